// Reading the text form: a recursive descent over tokens that makes a message, which the verifier then
// judges.
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/names.h"
#include "engine/kernel/text.h"
#include "engine/kernel/text_lexer.h"
#include "engine/kernel/typing.h"
#include "engine/kernel/verify_at.h"

namespace eagle::kernel {
namespace {

using google::protobuf::Message;

constexpr std::array scalars = {Scalar::f64, Scalar::f32, Scalar::i64, Scalar::i32, Scalar::boolean};
constexpr std::array roles = {Role::read, Role::mutable_, Role::output, Role::param, Role::terminated};

template <typename Enum, std::size_t count>
std::optional<Enum> named(const std::array<Enum, count>& all, std::string_view name) {
  for (const Enum item : all) {
    if (name_of(item) == name) return item;
  }
  return std::nullopt;
}

// The whole of `text` as a number.
template <typename Number, typename... Format>
bool read_number(std::string_view text, Number& number, Format... format) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, format...);
  return error == std::errc() && end == text.data() + text.size();
}

// `from_chars` without its leniency: one sign at most, and no 0x before inf or nan.
template <typename Real>
bool read_real(std::string_view text, Real& value) {
  const bool negative = text.substr(0, 1) == "-";
  if (negative) text.remove_prefix(1);
  const bool hexadecimal = text.substr(0, 2) == "0x";
  if (hexadecimal) text.remove_prefix(2);
  if (text.empty() || text[0] == '-') return false;
  if (hexadecimal && (text[0] == 'i' || text[0] == 'I' || text[0] == 'n' || text[0] == 'N')) return false;
  const auto format = hexadecimal ? std::chars_format::hex : std::chars_format::general;
  if (!read_number(text, value, format)) return false;
  if (negative) value = -value;
  return true;
}

bool read_hex_byte(std::string_view digits, char& byte) {
  std::uint8_t value = 0;
  if (digits.size() != 2) return false;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + 2, value, 16);
  byte = static_cast<char>(value);
  return error == std::errc() && end == digits.data() + 2;
}

// The characters that an escaped string stands for, or none when an escape is not one of \\ \" \xHH.
std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t length = 1;
    char c = text[0];
    if (c == '\\') {
      const char escape = text.size() > 1 ? text[1] : ' ';
      if (escape == 'x') {
        if (!read_hex_byte(text.substr(2, 2), c)) return std::nullopt;
        length = 4;
      } else if (escape == '\\' || escape == '"') {
        c = escape;
        length = 2;
      } else {
        return std::nullopt;
      }
    }
    out += c;
    text.remove_prefix(length);
  }
  return out;
}

class Parser {
public:
  explicit Parser(std::string_view text) : lexer_(text) { advance(); }

  StatusOr<Kernel> parse();

private:
  struct Stated {
    ValueId value;
    Type type;
    Position position;
  };

  Status parse_argument(v1::Argument& message);
  Status parse_region(std::uint32_t depth, v1::Region& message);
  Status parse_op(std::uint32_t depth, v1::Op& message);
  Status parse_plain(const Rule& rule, const std::vector<Token>& results, v1::Op& message);
  Status parse_branch(const std::vector<Token>& results, std::uint32_t depth, v1::Op& message);
  Status parse_literal(const Token& token, Scalar scalar, v1::Constant& message);
  Status parse_values(google::protobuf::RepeatedField<std::uint32_t>& values);
  Status parse_value(std::uint32_t& value);
  Status parse_scalar(Scalar& scalar);
  Status parse_type(Type& type);
  Status parse_name(std::string& name);
  Status parse_extent(std::uint16_t& extent);
  Status define(const Token& number);

  Status check_stated(const Kernel& kernel) const;

  // The token after the current one becomes the current one.
  void advance() { token_ = lexer_.next(); }
  [[nodiscard]] bool is(std::string_view text) const {
    return (token_.kind == Token::Kind::word || token_.kind == Token::Kind::mark) && token_.text == text;
  }
  bool accept(std::string_view text) {
    if (!is(text)) return false;
    advance();
    return true;
  }
  Status expect(std::string_view text) {
    return accept(text) ? Status() : unexpected("'" + std::string(text) + "'");
  }
  [[nodiscard]] Status unexpected(const std::string& expected) const { return unexpected(expected, token_); }
  [[nodiscard]] static Status unexpected(const std::string& expected, const Token& found);

  Lexer lexer_;
  Token token_;
  Limits limits_;
  ValueId next_value_ = 0;
  std::vector<Stated> stated_;
  std::unordered_map<const Message*, Position> origins_;
};

void set_type(const Type& type, v1::Type& message) {
  message.set_scalar(static_cast<v1::ScalarType>(type.scalar));
  for (std::size_t i = 0; i < type.rank; ++i) message.add_extents(type.extents[i]);
}

StatusOr<Kernel> Parser::parse() {
  v1::Kernel message;
  const Position start = token_.position;
  EAGLE_RETURN_IF_ERROR(expect("kernel"));
  EAGLE_RETURN_IF_ERROR(expect("@"));
  EAGLE_RETURN_IF_ERROR(parse_name(*message.mutable_name()));
  EAGLE_RETURN_IF_ERROR(expect("real"));
  EAGLE_RETURN_IF_ERROR(expect("="));
  Scalar real = Scalar::f64;
  EAGLE_RETURN_IF_ERROR(parse_scalar(real));
  message.set_real(static_cast<v1::ScalarType>(real));
  while (!is("{")) EAGLE_RETURN_IF_ERROR(parse_argument(*message.add_arguments()));
  EAGLE_RETURN_IF_ERROR(parse_region(0, *message.mutable_body()));
  if (token_.kind != Token::Kind::end) return unexpected("the end of the text");

  const Message* refused = nullptr;
  StatusOr<Kernel> kernel = verify_at(message, limits_, refused);
  if (!kernel.ok()) {
    const auto origin = origins_.find(refused);
    return kernel.status().within(to_string(origin == origins_.end() ? start : origin->second));
  }
  EAGLE_RETURN_IF_ERROR(check_stated(*kernel));
  return kernel;
}

Status Parser::parse_argument(v1::Argument& message) {
  origins_[&message] = token_.position;
  const auto role = token_.kind == Token::Kind::word ? named(roles, token_.text) : std::nullopt;
  if (!role) return unexpected("a role (read, mutable, output, param, terminated) or '{'");
  advance();
  message.set_role(static_cast<v1::Role>(*role));
  if (has_entry_value(*role)) {
    if (token_.kind != Token::Kind::value) return unexpected("the number of the argument's value, like %0");
    EAGLE_RETURN_IF_ERROR(define(token_));
    advance();
  }
  EAGLE_RETURN_IF_ERROR(parse_name(*message.mutable_name()));
  EAGLE_RETURN_IF_ERROR(expect(":"));
  Type type;
  EAGLE_RETURN_IF_ERROR(parse_type(type));
  set_type(type, *message.mutable_type());
  return {};
}

Status Parser::parse_region(std::uint32_t depth, v1::Region& message) {
  if (depth > limits_.depth) {
    return Status(Reason::kernel_limit, to_string(token_.position) + ": expected at most " +
                                            std::to_string(limits_.depth) +
                                            " levels of nested regions (limit kernel_depth)");
  }
  EAGLE_RETURN_IF_ERROR(expect("{"));
  while (!is("yield")) EAGLE_RETURN_IF_ERROR(parse_op(depth, *message.add_ops()));
  advance();
  if (!is("}")) EAGLE_RETURN_IF_ERROR(parse_values(*message.mutable_yields()));
  return expect("}");
}

Status Parser::parse_op(std::uint32_t depth, v1::Op& message) {
  origins_[&message] = token_.position;
  std::vector<Token> results;
  while (token_.kind == Token::Kind::value) {
    results.push_back(token_);
    advance();
    if (!accept(",")) break;
  }
  if (!results.empty()) EAGLE_RETURN_IF_ERROR(expect("="));
  const Rule* rule = token_.kind == Token::Kind::word ? find_rule(token_.text) : nullptr;
  if (rule == nullptr) return unexpected(results.empty() ? "an op or 'yield'" : "an opcode");
  const Token opcode = token_;
  advance();
  message.set_code(static_cast<v1::Opcode>(rule->code));
  if (rule->typing == Typing::branch) return parse_branch(results, depth, message);
  if (results.size() != 1) return unexpected("one result before " + std::string(rule->name), opcode);
  return parse_plain(*rule, results, message);
}

Status Parser::parse_plain(const Rule& rule, const std::vector<Token>& results, v1::Op& message) {
  Token literal;
  if (rule.typing == Typing::constant) {
    if (token_.kind != Token::Kind::word) return unexpected("a literal");
    literal = token_;
    advance();
  } else {
    EAGLE_RETURN_IF_ERROR(parse_values(*message.mutable_operands()));
  }
  EAGLE_RETURN_IF_ERROR(expect(":"));
  const Position position = token_.position;
  Type type;
  EAGLE_RETURN_IF_ERROR(parse_type(type));
  if (rule.states_type()) set_type(type, *message.mutable_type());
  if (rule.typing == Typing::constant) {
    EAGLE_RETURN_IF_ERROR(parse_literal(literal, type.scalar, *message.mutable_constant()));
  }
  stated_.push_back({next_value_, type, position});
  return define(results[0]);
}

Status Parser::parse_branch(const std::vector<Token>& results, std::uint32_t depth, v1::Op& message) {
  std::uint32_t condition = 0;
  EAGLE_RETURN_IF_ERROR(parse_value(condition));
  message.add_operands(condition);
  std::vector<Stated> types;
  if (accept("->")) {
    do {
      Stated& stated = types.emplace_back();
      stated.position = token_.position;
      EAGLE_RETURN_IF_ERROR(parse_type(stated.type));
    } while (accept(","));
  }
  if (types.size() != results.size()) {
    return unexpected("as many types as results (" + std::to_string(results.size()) +
                      ") before the then side");
  }
  EAGLE_RETURN_IF_ERROR(parse_region(depth + 1, *message.add_regions()));
  EAGLE_RETURN_IF_ERROR(expect("else"));
  EAGLE_RETURN_IF_ERROR(parse_region(depth + 1, *message.add_regions()));
  const auto yields = static_cast<std::size_t>(message.regions(1).yields_size());
  if (yields != results.size()) {
    return Status(Reason::malformed_kernel,
                  to_string(origins_[&message]) + ": expected " + std::to_string(yields) +
                      " results (what the sides yield), found " + std::to_string(results.size()));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    stated_.push_back({next_value_, types[i].type, types[i].position});
    EAGLE_RETURN_IF_ERROR(define(results[i]));
  }
  return {};
}

Status Parser::parse_literal(const Token& token, Scalar scalar, v1::Constant& message) {
  bool ok = token.kind == Token::Kind::word;
  switch (scalar) {
    case Scalar::f64: {
      double value = 0;
      ok = ok && read_real(token.text, value);
      message.set_f64(value);
      break;
    }
    case Scalar::f32: {
      float value = 0;
      ok = ok && read_real(token.text, value);
      message.set_f32(value);
      break;
    }
    case Scalar::i64: {
      std::int64_t value = 0;
      ok = ok && read_number(token.text, value);
      message.set_i64(value);
      break;
    }
    case Scalar::i32: {
      std::int32_t value = 0;
      ok = ok && read_number(token.text, value);
      message.set_i32(value);
      break;
    }
    case Scalar::boolean:
      ok = ok && (token.text == "true" || token.text == "false");
      message.set_boolean(token.text == "true");
      break;
  }
  return ok ? Status() : unexpected("a literal in the range of " + std::string(name_of(scalar)), token);
}

Status Parser::parse_values(google::protobuf::RepeatedField<std::uint32_t>& values) {
  do {
    EAGLE_RETURN_IF_ERROR(parse_value(*values.Add()));
  } while (accept(","));
  return {};
}

Status Parser::parse_value(std::uint32_t& value) {
  if (token_.kind != Token::Kind::value || !read_number(token_.text, value))
    return unexpected("a value, like %3");
  advance();
  return {};
}

Status Parser::parse_scalar(Scalar& scalar) {
  const auto found = token_.kind == Token::Kind::word ? named(scalars, token_.text) : std::nullopt;
  if (!found) return unexpected("a scalar type (f64, f32, i64, i32, bool)");
  scalar = *found;
  advance();
  return {};
}

Status Parser::parse_type(Type& type) {
  type = Type{};
  EAGLE_RETURN_IF_ERROR(parse_scalar(type.scalar));
  if (!accept("[")) return {};
  do {
    if (type.rank == 2) return unexpected("']' (a type has at most 2 extents)");
    EAGLE_RETURN_IF_ERROR(parse_extent(type.extents[type.rank++]));
  } while (accept(","));
  return expect("]");
}

Status Parser::parse_extent(std::uint16_t& extent) {
  if (token_.kind != Token::Kind::word || !read_number(token_.text, extent)) {
    return unexpected("an extent from 1 to " + std::to_string(std::numeric_limits<std::uint16_t>::max()));
  }
  advance();
  return {};
}

Status Parser::parse_name(std::string& name) {
  if (token_.kind == Token::Kind::word) {
    name = token_.text;
  } else if (token_.kind == Token::Kind::string) {
    auto text = unescaped(token_.text);
    if (!text) return unexpected("a string with no other escapes than \\\\, \\\" and \\xHH");
    name = std::move(*text);
  } else {
    return unexpected("a name");
  }
  advance();
  return {};
}

// The text states the numbers that follow from the order, so that a reader need not count.
Status Parser::define(const Token& number) {
  std::uint32_t stated = 0;
  if (!read_number(number.text, stated) || stated != next_value_) {
    return unexpected(
        "%" + std::to_string(next_value_) + " (values are numbered in the order of their definition)",
        number);
  }
  ++next_value_;
  return {};
}

Status Parser::check_stated(const Kernel& kernel) const {
  for (const Stated& stated : stated_) {
    const Type& type = kernel.value_types[stated.value];
    if (type == stated.type) continue;
    return Status(Reason::malformed_kernel, to_string(stated.position) + ": expected " + to_string(type) +
                                                " (what the op gives), found " + to_string(stated.type));
  }
  return {};
}

Status Parser::unexpected(const std::string& expected, const Token& found) {
  std::string what = "the end of the text";
  if (found.kind == Token::Kind::value) {
    what = quote_name("%" + std::string(found.text));
  } else if (found.kind != Token::Kind::end) {
    what = quote_name(found.text);
  }
  return Status(Reason::malformed_kernel,
                to_string(found.position) + ": expected " + expected + ", found " + what);
}

}  // namespace

StatusOr<Kernel> from_text(std::string_view text) { return Parser(text).parse(); }

}  // namespace eagle::kernel
