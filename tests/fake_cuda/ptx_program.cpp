#include "tests/fake_cuda/ptx_program.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

namespace eagle::fake_cuda {
namespace {

using Kind = PtxOperand::Kind;

struct Failure {
  std::uint32_t line;
  std::string text;
};

constexpr std::array<std::pair<std::string_view, PtxType>, 15> types = {{{"pred", PtxType::pred},
                                                                         {"b8", PtxType::b8},
                                                                         {"b16", PtxType::b16},
                                                                         {"b32", PtxType::b32},
                                                                         {"b64", PtxType::b64},
                                                                         {"u8", PtxType::u8},
                                                                         {"u16", PtxType::u16},
                                                                         {"u32", PtxType::u32},
                                                                         {"u64", PtxType::u64},
                                                                         {"s8", PtxType::s8},
                                                                         {"s16", PtxType::s16},
                                                                         {"s32", PtxType::s32},
                                                                         {"s64", PtxType::s64},
                                                                         {"f32", PtxType::f32},
                                                                         {"f64", PtxType::f64}}};

constexpr std::array<std::pair<std::string_view, PtxCompare>, 18> comparisons = {{{"eq", PtxCompare::eq},
                                                                                  {"ne", PtxCompare::ne},
                                                                                  {"lt", PtxCompare::lt},
                                                                                  {"le", PtxCompare::le},
                                                                                  {"gt", PtxCompare::gt},
                                                                                  {"ge", PtxCompare::ge},
                                                                                  {"lo", PtxCompare::lo},
                                                                                  {"ls", PtxCompare::ls},
                                                                                  {"hi", PtxCompare::hi},
                                                                                  {"hs", PtxCompare::hs},
                                                                                  {"equ", PtxCompare::equ},
                                                                                  {"neu", PtxCompare::neu},
                                                                                  {"ltu", PtxCompare::ltu},
                                                                                  {"leu", PtxCompare::leu},
                                                                                  {"gtu", PtxCompare::gtu},
                                                                                  {"geu", PtxCompare::geu},
                                                                                  {"num", PtxCompare::num},
                                                                                  {"nan", PtxCompare::nan}}};

constexpr std::array<std::pair<std::string_view, PtxOp>, 26> simple_ops = {
    {{"mov", PtxOp::mov},   {"ld", PtxOp::ld},     {"st", PtxOp::st},     {"cvt", PtxOp::cvt},
     {"add", PtxOp::add},   {"sub", PtxOp::sub},   {"div", PtxOp::div},   {"rem", PtxOp::rem},
     {"min", PtxOp::min},   {"max", PtxOp::max},   {"abs", PtxOp::abs},   {"neg", PtxOp::neg},
     {"fma", PtxOp::fma},   {"sqrt", PtxOp::sqrt}, {"rcp", PtxOp::rcp},   {"and", PtxOp::and_},
     {"or", PtxOp::or_},    {"xor", PtxOp::xor_},  {"not", PtxOp::not_},  {"shl", PtxOp::shl},
     {"shr", PtxOp::shr},   {"selp", PtxOp::selp}, {"setp", PtxOp::setp}, {"bfe", PtxOp::bfe},
     {"popc", PtxOp::popc}, {"clz", PtxOp::clz}}};

template <typename Table>
auto find_in(const Table& table, std::string_view name) -> std::optional<decltype(table[0].second)> {
  for (const auto& [known, value] : table) {
    if (known == name) return value;
  }
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// At commas outside of brackets.
std::vector<std::string_view> split_operands(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      const std::string_view part = trimmed(text.substr(begin, i - begin));
      if (!part.empty()) parts.push_back(part);
      begin = i + 1;
    } else if (text[i] == '(' || text[i] == '[' || text[i] == '{') {
      ++depth;
    } else if (text[i] == ')' || text[i] == ']' || text[i] == '}') {
      --depth;
    }
  }
  return parts;
}

std::vector<std::string_view> words_of(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t first = text.find_first_not_of(separators);
    if (first == std::string_view::npos) return words;
    text.remove_prefix(first);
    const std::string_view word = text.substr(0, text.find_first_of(separators));
    words.push_back(word);
    text.remove_prefix(word.size());
  }
}

std::string without_comments(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    clean += line.substr(0, line.find("//"));
    clean += '\n';
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return clean;
}

// ".param .align 8 .b8 name[96]": type, name and how many.
struct Declared {
  PtxType type = PtxType::b64;
  std::string name;
  std::uint32_t count = 1;
  std::uint32_t align = 1;
  [[nodiscard]] std::uint32_t bytes() const { return count * static_cast<std::uint32_t>(bits_of(type)) / 8; }
};

class Parser {
public:
  explicit Parser(std::string_view text) : text_(without_comments(text)) {}

  PtxProgram program() {
    while (skip_blanks()) top_level();
    if (program_.version == 0 || program_.target.empty()) fail("expected .version and .target");
    for (const auto& [place, name] : calls_) {
      if (declares_set_conditional_ && name == "cudaGraphSetConditional") {
        program_.functions[place.first].instructions[place.second].target = set_conditional_function;
        continue;
      }
      const auto found = functions_.find(name);
      if (found == functions_.end()) throw Failure{0, "function '" + name + "' is called and not there"};
      program_.functions[place.first].instructions[place.second].target = found->second;
    }
    return std::move(program_);
  }

private:
  [[noreturn]] void fail(const std::string& text) const { throw Failure{line(), text}; }
  [[nodiscard]] std::uint32_t line() const {
    return 1 + static_cast<std::uint32_t>(
                   std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n'));
  }
  bool skip_blanks() {
    at_ = text_.find_first_not_of(" \t\r\n", at_);
    if (at_ == std::string::npos) at_ = text_.size();
    return at_ < text_.size();
  }
  // Up to one of these characters, which is taken as well.
  std::string_view until(std::string_view ends, char& end) {
    const std::size_t found = text_.find_first_of(ends, at_);
    if (found == std::string::npos) fail("unexpected end of the text");
    const std::string_view taken(text_.data() + at_, found - at_);
    end = text_[found];
    at_ = found + 1;
    return trimmed(taken);
  }
  std::string_view rest_of_line() {
    char end = 0;
    return until("\n", end);
  }

  void top_level() {
    const std::string_view rest = std::string_view(text_).substr(at_);
    if (rest.starts_with(".version")) {
      const auto words = words_of(rest_of_line(), " .\t");
      if (words.size() != 3) fail("expected .version MAJOR.MINOR");
      program_.version = 10 * static_cast<int>(number(words[1])) + static_cast<int>(number(words[2]));
    } else if (rest.starts_with(".target")) {
      program_.target = words_of(rest_of_line(), " \t,")[1];
    } else if (rest.starts_with(".address_size")) {
      if (words_of(rest_of_line(), " \t")[1] != "64") fail("expected .address_size 64");
    } else if (rest.starts_with(".global") || rest.starts_with(".const")) {
      global();
    } else {
      function();
    }
  }

  Declared declared(std::string_view text) const {
    Declared found;
    const auto words = words_of(text, " \t\n");
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == ".align" && i + 1 < words.size()) {
        found.align = static_cast<std::uint32_t>(number(words[++i]));
      } else if (words[i].front() == '.') {
        if (const auto type = find_in(types, words[i].substr(1))) found.type = *type;
      } else {
        const std::size_t bracket = words[i].find('[');
        found.name = words[i].substr(0, bracket);
        if (bracket != std::string_view::npos)
          found.count =
              static_cast<std::uint32_t>(number(words[i].substr(bracket + 1, words[i].size() - bracket - 2)));
      }
    }
    return found;
  }

  void global() {
    char end = 0;
    const std::string_view head = until("=;", end);
    const Declared declaration = declared(head);
    auto& bytes = program_.globals;
    bytes.resize((bytes.size() + 63) / 64 * 64);
    globals_[declaration.name] = bytes.size();
    const std::size_t begin = bytes.size();
    bytes.resize(begin + declaration.bytes());
    if (end == ';') return;
    std::string_view values = until(";", end);
    values = trimmed(values);
    if (!values.starts_with('{') || !values.ends_with('}')) fail("expected {values}");
    const std::size_t size = static_cast<std::size_t>(bits_of(declaration.type)) / 8;
    std::size_t place = begin;
    for (const std::string_view value : split_operands(values.substr(1, values.size() - 2))) {
      if (place + size > bytes.size()) fail("more values than the global has room for");
      const std::uint64_t bits = number(value);
      std::memcpy(bytes.data() + place, &bits, size);
      place += size;
    }
  }

  // ---- functions

  void function() {
    char end = 0;
    const std::string_view head = until("{;", end);
    if (end == ';') {  // a prototype
      declares_set_conditional_ |= head.find("cudaGraphSetConditional") != std::string_view::npos;
      return;
    }
    PtxFunction made;
    made.entry = head.find(".entry") != std::string_view::npos;
    if (!made.entry && head.find(".func") == std::string_view::npos)
      fail("expected .entry or .func, found '" + std::string(head.substr(0, 40)) + "'");
    registers_.clear();
    labels_.clear();
    jumps_.clear();
    frame_.clear();
    parameters_.clear();
    made_ = &made;
    header(head);
    body();
    for (const auto& [instruction, label] : jumps_) {
      const auto found = labels_.find(label);
      if (found == labels_.end()) fail("no label '" + label + "' in " + made.name);
      made.instructions[instruction].target = found->second;
    }
    made.instructions.push_back(PtxInstruction());  // ret
    made.registers = static_cast<std::uint32_t>(registers_.size());
    functions_[made.name] = static_cast<std::uint32_t>(program_.functions.size());
    program_.functions.push_back(std::move(made));
  }

  // ".func (.param .b64 func_retval0) name ( .param .b64 name_param_0, ... )"
  void header(std::string_view head) {
    const std::string_view keyword = made_->entry ? ".entry" : ".func";
    std::string_view rest = trimmed(head.substr(head.find(keyword) + keyword.size()));
    if (rest.starts_with('(')) {
      const std::size_t close = rest.find(')');
      made_->result = place(declared(rest.substr(1, close - 1)));
      rest = trimmed(rest.substr(close + 1));
    }
    const std::size_t open = rest.find('(');
    made_->name = trimmed(rest.substr(0, open));
    if (open == std::string_view::npos) return;
    const std::size_t close = rest.find(')', open);
    for (const std::string_view one : split_operands(rest.substr(open + 1, close - open - 1))) {
      const Declared parameter = declared(one);
      if (made_->entry) {
        made_->parameter_bytes = (made_->parameter_bytes + 7) / 8 * 8;
        parameters_[parameter.name] = made_->parameter_bytes;
        made_->parameter_bytes += parameter.bytes();
      } else {
        made_->parameters.push_back(place(parameter));
      }
    }
  }

  // Bytes of the function's frame.
  std::uint32_t place(const Declared& declaration) {
    made_->frame_bytes = (made_->frame_bytes + 15) / 16 * 16;
    const std::uint32_t begin = made_->frame_bytes;
    frame_[declaration.name] = begin;
    made_->frame_bytes += std::max(declaration.bytes(), 8u);
    return begin;
  }

  void body() {
    int depth = 1;
    while (true) {
      if (!skip_blanks()) fail("a function without an end");
      if (text_[at_] == '{') {
        ++depth, ++at_;
        continue;
      }
      if (text_[at_] == '}') {
        ++at_;
        if (--depth == 0) return;
        continue;
      }
      statement();
    }
  }

  void statement() {
    const std::size_t colon = text_.find(':', at_), semicolon = text_.find(';', at_);
    if (colon < semicolon && text_[at_] == '$') {
      labels_[text_.substr(at_, colon - at_)] = static_cast<std::uint32_t>(made_->instructions.size());
      at_ = colon + 1;
      return;
    }
    const std::uint32_t number_of_line = line();
    char end = 0;
    const std::string_view text = until(";", end);
    if (text.starts_with(".reg")) return;  // registers have no types of their own here
    if (text.starts_with(".param") || text.starts_with(".local")) {
      place(declared(text));
      return;
    }
    if (text.starts_with(".pragma")) return;
    if (text.starts_with('.')) fail("an unknown directive: " + std::string(text));
    instruction(text, number_of_line);
  }

  std::uint64_t reg(std::string_view name) {
    return registers_.emplace(std::string(name), registers_.size()).first->second;
  }

  std::uint64_t number(std::string_view text) const {
    std::uint64_t bits = 0;
    int base = 10;
    bool minus = false;
    std::string_view digits = text;
    if (digits.starts_with("0d") || digits.starts_with("0D") || digits.starts_with("0f") ||
        digits.starts_with("0F") || digits.starts_with("0x") || digits.starts_with("0X")) {
      base = 16;
      digits.remove_prefix(2);
    } else if (digits.starts_with('-')) {
      minus = true;
      digits.remove_prefix(1);
    }
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, base);
    if (error != std::errc() || stop != digits.data() + digits.size())
      fail("expected a number, found '" + std::string(text) + "'");
    return minus ? -bits : bits;
  }

  std::optional<std::uint64_t> special(std::string_view name) const {
    constexpr std::array<std::string_view, 4> known = {"%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x"};
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (name == known[i]) return i;
    }
    return std::nullopt;
  }

  PtxOperand operand(std::string_view text) {
    PtxOperand found;
    if (text.starts_with('!')) {
      found.negated = true;
      text = text.substr(1);
    }
    if (const auto number_of = special(text)) {
      found.kind = Kind::special;
      found.value = *number_of;
    } else if (text.starts_with('%')) {
      found.kind = Kind::reg;
      found.value = reg(text);
    } else if (const auto name = std::string(text); globals_.contains(name)) {
      found.kind = Kind::global;
      found.value = globals_.at(name);
    } else if (frame_.contains(name)) {
      found.kind = Kind::frame;
      found.value = frame_.at(name);
    } else if (parameters_.contains(name)) {
      found.kind = Kind::parameter;
      found.value = parameters_.at(name);
    } else {
      found.kind = Kind::immediate;
      found.value = number(text);
    }
    return found;
  }

  PtxOperand address(std::string_view text) {
    if (!text.starts_with('[') || !text.ends_with(']'))
      fail("expected an [address], found '" + std::string(text) + "'");
    text = trimmed(text.substr(1, text.size() - 2));
    const std::size_t plus = text.find_first_of("+-", 1);
    PtxOperand found = operand(trimmed(text.substr(0, plus)));
    if (plus != std::string_view::npos) {
      std::string_view offset = text.substr(plus);
      if (offset.front() == '+') offset.remove_prefix(1);
      found.offset = static_cast<std::int64_t>(number(trimmed(offset)));
    }
    return found;
  }

  void instruction(std::string_view text, std::uint32_t number_of_line) {
    PtxInstruction made;
    made.line = number_of_line;
    if (text.starts_with('@')) {
      const std::size_t blank = text.find_first_of(" \t");
      made.guard = operand(text.substr(1, blank - 1));
      text = trimmed(text.substr(blank));
    }
    const std::size_t blank = std::min(text.find_first_of(" \t\n"), text.size());
    const std::vector<std::string_view> words = words_of(text.substr(0, blank), ".:");
    const std::vector<std::string_view> operands = split_operands(text.substr(blank));
    decode(made, words, operands, text);
    made_->instructions.push_back(std::move(made));
  }

  void decode(PtxInstruction& made, const std::vector<std::string_view>& words,
              const std::vector<std::string_view>& operands, std::string_view text) {
    const std::string_view name = words[0];
    if (name == "ret" || name == "exit") return;
    if (name == "bra") {
      made.op = PtxOp::bra;
      jumps_.emplace_back(made_->instructions.size(), std::string(operands.at(0)));
      return;
    }
    if (name == "call") return decode_call(made, operands);
    std::vector<PtxType> named;
    for (const std::string_view word : words) {
      if (const auto type = find_in(types, word)) named.push_back(*type);
      if (const auto round = find_in(rounds, word)) made.round = *round;
    }
    if (named.empty()) fail("an instruction without a type: " + std::string(text));
    made.type = named.front();
    made.from = named.back();
    if (name == "cvta") {
      made.op = PtxOp::mov;
    } else if (name == "atom") {
      made.op = atomic(words, text);
    } else if (name == "mul" || name == "mad") {
      made.op = product(name == "mad", made.type, words, text);
    } else if (name == "bfi") {
      made.op = PtxOp::bfi;
    } else if (const auto op = find_in(simple_ops, name)) {
      made.op = *op;
    } else {
      fail("an unknown instruction: " + std::string(text));
    }
    if (made.op == PtxOp::setp) comparison(made, words);
    take_operands(made, operands, text);
  }

  void comparison(PtxInstruction& made, const std::vector<std::string_view>& words) const {
    const auto compare = find_in(comparisons, words.at(1));
    if (!compare) fail("an unknown comparison ." + std::string(words[1]));
    made.compare = *compare;
    if (words.at(2) == "and") made.combine = PtxCombine::and_;
    if (words.at(2) == "or") made.combine = PtxCombine::or_;
    if (words.at(2) == "xor") made.combine = PtxCombine::xor_;
  }

  PtxOp atomic(const std::vector<std::string_view>& words, std::string_view text) const {
    for (const std::string_view word : words) {
      if (word == "add") return PtxOp::atom_add;
      if (word == "min") return PtxOp::atom_min;
      if (word == "max") return PtxOp::atom_max;
    }
    fail("an unknown atomic: " + std::string(text));
  }

  PtxOp product(bool added, PtxType type, const std::vector<std::string_view>& words,
                std::string_view text) const {
    if (is_real(type) && !added) return PtxOp::mul_lo;
    if (words.at(1) == "lo") return added ? PtxOp::mad_lo : PtxOp::mul_lo;
    if (words.at(1) == "wide") return added ? PtxOp::mad_wide : PtxOp::mul_wide;
    if (words.at(1) == "hi" && !added) return PtxOp::mul_hi;
    fail("an unknown product: " + std::string(text));
  }

  void take_operands(PtxInstruction& made, const std::vector<std::string_view>& operands,
                     std::string_view text) {
    const auto at_least = [&](std::size_t count) {
      if (operands.size() < count) fail("too few operands: " + std::string(text));
    };
    const auto vector = [&](std::string_view list) {
      for (const std::string_view one : split_operands(list.substr(1, list.size() - 2)))
        made.arguments.push_back(operand(one));
    };
    if (made.op == PtxOp::st) {
      at_least(2);
      made.a = address(operands[0]);
      if (operands[1].starts_with('{')) return vector(operands[1]);
      made.b = operand(operands[1]);
      return;
    }
    at_least(2);
    if (operands[0].starts_with('{')) {
      vector(operands[0]);
    } else {
      made.result = operand(operands[0]);
    }
    const bool memory = made.op == PtxOp::ld || made.op == PtxOp::atom_add || made.op == PtxOp::atom_min ||
                        made.op == PtxOp::atom_max;
    if (!memory && operands[1].starts_with('{')) return vector(operands[1]);  // mov of two halves
    made.a = memory ? address(operands[1]) : operand(operands[1]);
    const std::array<PtxOperand*, 3> more = {&made.b, &made.c, &made.d};
    for (std::size_t i = 2; i < operands.size() && i - 2 < more.size(); ++i)
      *more[i - 2] = operand(operands[i]);
  }

  // call.uni (retval0), name, (param0, param1); the places are parts of this function's frame.
  void decode_call(PtxInstruction& made, const std::vector<std::string_view>& operands) {
    made.op = PtxOp::call;
    std::size_t next = 0;
    if (!operands.empty() && operands[0].starts_with('(')) {
      made.result = operand(trimmed(operands[0].substr(1, operands[0].size() - 2)));
      next = 1;
    }
    if (operands.size() <= next) fail("a call of nothing");
    calls_.emplace_back(std::pair(program_.functions.size(), made_->instructions.size()),
                        std::string(operands[next]));
    if (operands.size() <= next + 1) return;
    const std::string_view list = operands[next + 1];
    for (const std::string_view one : split_operands(list.substr(1, list.size() - 2)))
      made.arguments.push_back(operand(one));
  }

  static constexpr std::array<std::pair<std::string_view, PtxRound>, 5> rounds = {{{"rn", PtxRound::rn},
                                                                                   {"rni", PtxRound::rni},
                                                                                   {"rzi", PtxRound::rzi},
                                                                                   {"rmi", PtxRound::rmi},
                                                                                   {"rpi", PtxRound::rpi}}};

  std::string text_;
  std::size_t at_ = 0;
  bool declares_set_conditional_ = false;
  PtxProgram program_;
  std::map<std::string, std::uint64_t> globals_;
  std::map<std::string, std::uint32_t> functions_;
  std::vector<std::pair<std::pair<std::size_t, std::size_t>, std::string>> calls_;
  // Of the function in hand.
  PtxFunction* made_ = nullptr;
  std::map<std::string, std::uint64_t> registers_;
  std::map<std::string, std::uint32_t> labels_;
  std::vector<std::pair<std::size_t, std::string>> jumps_;
  std::map<std::string, std::uint32_t> frame_;
  std::map<std::string, std::uint32_t> parameters_;
};

}  // namespace

int bits_of(PtxType type) {
  switch (type) {
    case PtxType::pred:
      return 1;
    case PtxType::b8:
    case PtxType::u8:
    case PtxType::s8:
      return 8;
    case PtxType::b16:
    case PtxType::u16:
    case PtxType::s16:
      return 16;
    case PtxType::b32:
    case PtxType::u32:
    case PtxType::s32:
    case PtxType::f32:
      return 32;
    default:
      return 64;
  }
}

bool is_signed(PtxType type) {
  return type == PtxType::s8 || type == PtxType::s16 || type == PtxType::s32 || type == PtxType::s64;
}
bool is_real(PtxType type) { return type == PtxType::f32 || type == PtxType::f64; }

const PtxFunction* PtxProgram::entry(std::string_view name) const {
  for (const PtxFunction& function : functions) {
    if (function.entry && function.name == name) return &function;
  }
  return nullptr;
}

StatusOr<PtxProgram> parse_ptx(std::string_view text) {
  try {
    return Parser(text).program();
  } catch (const Failure& failure) {
    return Status(Reason::bad_message, "PTX line " + std::to_string(failure.line) + ": " + failure.text);
  } catch (const std::exception& failure) {
    return Status(Reason::bad_message, std::string("PTX: ") + failure.what());
  }
}

}  // namespace eagle::fake_cuda
