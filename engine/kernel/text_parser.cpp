// Reading the text form: a recursive descent over tokens that makes a message, which the verifier then
// judges.
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/names.h"
#include "engine/kernel/text.h"
#include "engine/kernel/text_lexer.h"
#include "engine/kernel/text_literals.h"
#include "engine/kernel/typing.h"
#include "engine/kernel/verify_at.h"

namespace eagle::kernel {
namespace {

using google::protobuf::Message;

constexpr std::array scalars = {Scalar::f64, Scalar::f32, Scalar::i64, Scalar::i32, Scalar::boolean};
constexpr std::array roles = {Role::read,       Role::mutable_, Role::output, Role::param,
                              Role::terminated, Role::table,    Role::accum,  Role::reduce};
constexpr std::array reductions = {ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::all, ReduceOp::any};
constexpr std::array policies = {DispatchPolicy::automatic, DispatchPolicy::switch_,
                                 DispatchPolicy::segmented, DispatchPolicy::predicated};

template <typename Enum, std::size_t count>
std::optional<Enum> named(const std::array<Enum, count>& all, std::string_view name) {
  for (const Enum item : all) {
    if (name_of(item) == name) return item;
  }
  return std::nullopt;
}

class Parser {
public:
  explicit Parser(std::string_view text) : lexer_(text) { advance(); }

  StatusOr<Kernel> parse();

private:
  // A result type that the text states, to be checked against the inferred one.
  struct Claim {
    ValueId value;
    Type type;
    Position position;
  };

  Status parse_argument(v1::Argument& message);
  Status parse_axes(v1::Argument& message);
  Status parse_region(std::uint32_t depth, v1::Region& message);
  Status parse_op(std::uint32_t depth, v1::Op& message);
  Status parse_plain(const Rule& rule, const Token& result, v1::Op& message);
  Status parse_operands(const Rule& rule, v1::Op& message);
  Status parse_typed(v1::Region& message);
  Status parse_indexed(v1::Op& message);
  Status parse_element(v1::Op& message);
  Status parse_addition(v1::Op& message);
  Status parse_structure(const Rule& rule, const std::vector<Token>& results, std::uint32_t depth,
                         v1::Op& message);
  Status parse_dispatch(v1::Dispatch& message);
  Status parse_gives(std::size_t results, std::vector<Claim>& types);
  Status parse_regions(const Rule& rule, const std::vector<Claim>& types, std::uint32_t depth,
                       v1::Op& message);
  Status parse_carried(const std::vector<Claim>& types, v1::Region& message);
  Status define_results(const Rule& rule, const std::vector<Token>& results, const std::vector<Claim>& types,
                        const v1::Op& message);
  Status parse_literal(const Token& token, Scalar scalar, v1::Constant& message);
  Status parse_values(google::protobuf::RepeatedField<std::uint32_t>& values);
  Status parse_value(std::uint32_t& value);
  Status parse_scalar(Scalar& scalar);
  Status parse_type(Type& type);
  Status parse_name(std::string& name);
  template <typename Number>
  Status parse_number(Number& number, const std::string& expected);
  Status define(const Token& number);

  Status check_claims(const Kernel& kernel) const;

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
  std::vector<Claim> claims_;
  std::unordered_map<std::string, std::uint32_t> arguments_;  // index by name
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
  if (is("derivative")) {
    EAGLE_RETURN_IF_ERROR(expect("derivative"));
    EAGLE_RETURN_IF_ERROR(expect("="));
    EAGLE_RETURN_IF_ERROR(expect("@"));
    EAGLE_RETURN_IF_ERROR(parse_name(*message.mutable_derivative_of()));
  }
  while (!is("{")) EAGLE_RETURN_IF_ERROR(parse_argument(*message.add_arguments()));
  EAGLE_RETURN_IF_ERROR(parse_region(0, *message.mutable_body()));
  if (token_.kind != Token::Kind::end) return unexpected("the end of the text");

  const Message* refused = nullptr;
  StatusOr<Kernel> kernel = verify_at(message, limits_, refused);
  if (!kernel.ok()) {
    const auto origin = origins_.find(refused);
    return kernel.status().within(to_string(origin == origins_.end() ? start : origin->second));
  }
  EAGLE_RETURN_IF_ERROR(check_claims(*kernel));
  return kernel;
}

Status Parser::parse_argument(v1::Argument& message) {
  origins_[&message] = token_.position;
  const auto role = token_.kind == Token::Kind::word ? named(roles, token_.text) : std::nullopt;
  if (!role)
    return unexpected("a role (read, mutable, output, param, terminated, table, accum, reduce) or '{'");
  advance();
  message.set_role(static_cast<v1::Role>(*role));
  if (has_entry_value(*role)) {
    if (token_.kind != Token::Kind::value) return unexpected("the number of the argument's value, like %0");
    EAGLE_RETURN_IF_ERROR(define(token_));
    advance();
  }
  if (*role == Role::reduce) {
    const auto op = token_.kind == Token::Kind::word ? named(reductions, token_.text) : std::nullopt;
    if (!op) return unexpected("a reduction (sum, max, min, all, any)");
    advance();
    message.set_reduce(static_cast<v1::ReduceOp>(*op));
  }
  EAGLE_RETURN_IF_ERROR(parse_name(*message.mutable_name()));
  arguments_.emplace(message.name(), static_cast<std::uint32_t>(arguments_.size()));
  if (accept("[")) EAGLE_RETURN_IF_ERROR(parse_axes(message));
  EAGLE_RETURN_IF_ERROR(expect(":"));
  Type type;
  EAGLE_RETURN_IF_ERROR(parse_type(type));
  set_type(type, *message.mutable_type());
  return {};
}

Status Parser::parse_axes(v1::Argument& message) {
  do {
    v1::Axis& axis = *message.add_axes();
    std::uint32_t extent = 0;
    EAGLE_RETURN_IF_ERROR(parse_name(*axis.mutable_name()));
    EAGLE_RETURN_IF_ERROR(expect(":"));
    EAGLE_RETURN_IF_ERROR(parse_number(extent, "an extent"));
    axis.set_extent(extent);
  } while (accept(","));
  return expect("]");
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
  if (rule->has_regions()) return parse_structure(*rule, results, depth, message);
  if (!rule->has_result()) {
    if (!results.empty()) return unexpected("no result before " + std::string(rule->name), opcode);
    return parse_addition(message);
  }
  if (results.size() != 1) return unexpected("one result before " + std::string(rule->name), opcode);
  return parse_plain(*rule, results[0], message);
}

Status Parser::parse_plain(const Rule& rule, const Token& result, v1::Op& message) {
  Token literal;
  if (rule.typing == Typing::constant) {
    if (token_.kind != Token::Kind::word) return unexpected("a literal");
    literal = token_;
    advance();
  } else {
    EAGLE_RETURN_IF_ERROR(parse_operands(rule, message));
  }
  EAGLE_RETURN_IF_ERROR(expect(":"));
  const Position position = token_.position;
  Type type;
  EAGLE_RETURN_IF_ERROR(parse_type(type));
  if (rule.states_type()) set_type(type, *message.mutable_type());
  if (rule.typing == Typing::constant) {
    EAGLE_RETURN_IF_ERROR(parse_literal(literal, type.scalar, *message.mutable_constant()));
  }
  claims_.push_back({next_value_, type, position});
  return define(result);
}

Status Parser::parse_operands(const Rule& rule, v1::Op& message) {
  if (rule.typing == Typing::extent) return parse_indexed(message);
  if (rule.operands == 0) return {};
  if (rule.typing == Typing::lookup) return parse_element(message);
  EAGLE_RETURN_IF_ERROR(parse_values(*message.mutable_operands()));
  if (rule.typing != Typing::component) return {};
  std::uint32_t component = 0;
  EAGLE_RETURN_IF_ERROR(expect("["));
  EAGLE_RETURN_IF_ERROR(parse_number(component, "the number of a component"));
  message.set_component(component);
  return expect("]");
}

// @name
Status Parser::parse_indexed(v1::Op& message) {
  EAGLE_RETURN_IF_ERROR(expect("@"));
  const Token token = token_;
  std::string name;
  EAGLE_RETURN_IF_ERROR(parse_name(name));
  const auto argument = arguments_.find(name);
  if (argument == arguments_.end()) return unexpected("the name of a table or accumulator", token);
  message.set_argument(argument->second);
  return {};
}

// @name[indices]
Status Parser::parse_element(v1::Op& message) {
  EAGLE_RETURN_IF_ERROR(parse_indexed(message));
  EAGLE_RETURN_IF_ERROR(expect("["));
  EAGLE_RETURN_IF_ERROR(parse_values(*message.mutable_operands()));
  return expect("]");
}

Status Parser::parse_addition(v1::Op& message) {
  EAGLE_RETURN_IF_ERROR(parse_value(*message.mutable_operands()->Add()));
  EAGLE_RETURN_IF_ERROR(expect("at"));
  return parse_element(message);
}

Status Parser::parse_structure(const Rule& rule, const std::vector<Token>& results, std::uint32_t depth,
                               v1::Op& message) {
  const bool any_operands = rule.operands != any_number || token_.kind == Token::Kind::value;
  if (any_operands) EAGLE_RETURN_IF_ERROR(parse_values(*message.mutable_operands()));
  if (rule.typing == Typing::loop) {
    std::uint64_t trips = 0;
    EAGLE_RETURN_IF_ERROR(expect("max"));
    EAGLE_RETURN_IF_ERROR(parse_number(trips, "the most trips of the loop"));
    message.set_max_trips(trips);
  }
  if (rule.typing == Typing::selection && accept("dispatch")) {
    EAGLE_RETURN_IF_ERROR(parse_dispatch(*message.mutable_dispatch()));
  }
  std::vector<Claim> types;
  EAGLE_RETURN_IF_ERROR(parse_gives(results.size(), types));
  EAGLE_RETURN_IF_ERROR(parse_regions(rule, types, depth, message));
  return define_results(rule, results, types, message);
}

Status Parser::parse_dispatch(v1::Dispatch& message) {
  EAGLE_RETURN_IF_ERROR(expect("@"));
  EAGLE_RETURN_IF_ERROR(parse_name(*message.mutable_name()));
  const auto policy = token_.kind == Token::Kind::word ? named(policies, token_.text) : std::nullopt;
  if (!policy) return unexpected("a dispatch policy (auto, switch, segmented, predicated)");
  advance();
  message.set_policy(static_cast<v1::DispatchPolicy>(*policy));
  return {};
}

Status Parser::parse_gives(std::size_t results, std::vector<Claim>& types) {
  if (accept("->")) {
    do {
      Claim& claim = types.emplace_back();
      claim.position = token_.position;
      EAGLE_RETURN_IF_ERROR(parse_type(claim.type));
    } while (accept(","));
  }
  if (types.size() == results) return {};
  return unexpected("as many types as results (" + std::to_string(results) + ") before the first region");
}

Status Parser::parse_regions(const Rule& rule, const std::vector<Claim>& types, std::uint32_t depth,
                             v1::Op& message) {
  if (rule.typing == Typing::selection) {
    do {
      const std::string number = std::to_string(message.regions_size());
      EAGLE_RETURN_IF_ERROR(expect("case"));
      EAGLE_RETURN_IF_ERROR(expect(number));
      EAGLE_RETURN_IF_ERROR(parse_region(depth + 1, *message.add_regions()));
    } while (is("case"));
    return {};
  }
  if (rule.typing == Typing::primitive) {
    for (const char* before : {"", "jvp", "vjp"}) {
      v1::Region& region = *message.add_regions();
      if (*before != '\0' && !accept(before)) continue;
      if (accept("(")) EAGLE_RETURN_IF_ERROR(parse_typed(region));
      EAGLE_RETURN_IF_ERROR(parse_region(depth + 1, region));
    }
    return {};
  }
  const bool is_loop = rule.typing == Typing::loop;
  for (int i = 0; i < 2; ++i) {
    if (i == 1) EAGLE_RETURN_IF_ERROR(expect(is_loop ? "do" : "else"));
    v1::Region& region = *message.add_regions();
    if (is_loop) EAGLE_RETURN_IF_ERROR(parse_carried(types, region));
    EAGLE_RETURN_IF_ERROR(parse_region(depth + 1, region));
  }
  return {};
}

// The numbers of a loop's values in one of its regions; the types are stated once, for all.
Status Parser::parse_carried(const std::vector<Claim>& types, v1::Region& message) {
  if (types.empty()) return {};
  EAGLE_RETURN_IF_ERROR(expect("("));
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (i > 0) EAGLE_RETURN_IF_ERROR(expect(","));
    if (token_.kind != Token::Kind::value) return unexpected("a carried value, like %3");
    EAGLE_RETURN_IF_ERROR(define(token_));
    advance();
    set_type(types[i].type, *message.add_arguments());
  }
  return expect(")");
}

// Values with their types, as far as the closing bracket.
Status Parser::parse_typed(v1::Region& message) {
  do {
    if (token_.kind != Token::Kind::value) return unexpected("a value, like %3");
    EAGLE_RETURN_IF_ERROR(define(token_));
    advance();
    EAGLE_RETURN_IF_ERROR(expect(":"));
    Type type;
    EAGLE_RETURN_IF_ERROR(parse_type(type));
    set_type(type, *message.add_arguments());
  } while (accept(","));
  return expect(")");
}

// The text's numbers are the verifier's only if the op has as many results as it will get there.
Status Parser::define_results(const Rule& rule, const std::vector<Token>& results,
                              const std::vector<Claim>& types, const v1::Op& message) {
  const bool is_loop = rule.typing == Typing::loop;
  const int given = is_loop ? message.operands_size() : message.regions(0).yields_size();
  if (static_cast<std::size_t>(given) != results.size()) {
    return Status(Reason::malformed_kernel, to_string(origins_[&message]) + ": expected " +
                                                std::to_string(given) + " results (what " +
                                                (is_loop ? "the loop carries" : "the regions yield") +
                                                "), found " + std::to_string(results.size()));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    claims_.push_back({next_value_, types[i].type, types[i].position});
    EAGLE_RETURN_IF_ERROR(define(results[i]));
  }
  return {};
}

Status Parser::parse_literal(const Token& token, Scalar scalar, v1::Constant& message) {
  if (read_literal(token.text, scalar, message)) return {};
  return unexpected("a literal in the range of " + std::string(name_of(scalar)), token);
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
    EAGLE_RETURN_IF_ERROR(parse_number(type.extents[type.rank++], "an extent"));
  } while (accept(","));
  return expect("]");
}

template <typename Number>
Status Parser::parse_number(Number& number, const std::string& expected) {
  if (token_.kind != Token::Kind::word || !read_number(token_.text, number)) {
    return unexpected(expected + " (at most " + std::to_string(std::numeric_limits<Number>::max()) + ")");
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

Status Parser::check_claims(const Kernel& kernel) const {
  for (const Claim& claim : claims_) {
    const Type& type = kernel.value_types[claim.value];
    if (type == claim.type) continue;
    return Status(Reason::malformed_kernel, to_string(claim.position) + ": expected " + to_string(type) +
                                                " (what the op gives), found " + to_string(claim.type));
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
