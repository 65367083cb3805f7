// Printing. The other direction is in text_parser.cpp.
#include "engine/kernel/text.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "engine/kernel/names.h"
#include "engine/kernel/typing.h"

namespace eagle::kernel {
namespace {

std::string name_text(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  bool word = !name.empty();
  for (const char c : name) word = word && plain(c);
  return word ? std::string(name) : '"' + escaped(name, '"') + '"';
}

template <typename Real>
std::string real_text(Real value) {
  if (std::isnan(value)) return "nan";
  const std::string sign = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return sign + "inf";
  std::array<char, 64> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), std::fabs(value), std::chars_format::hex);
  return sign + "0x" + std::string(digits.data(), end.ptr);
}

std::string constant_text(Scalar scalar, std::uint64_t bits) {
  const auto low = static_cast<std::uint32_t>(bits);
  switch (scalar) {
    case Scalar::f64:
      return real_text(std::bit_cast<double>(bits));
    case Scalar::f32:
      return real_text(std::bit_cast<float>(low));
    case Scalar::i64:
      return std::to_string(static_cast<std::int64_t>(bits));
    case Scalar::i32:
      return std::to_string(static_cast<std::int32_t>(low));
    case Scalar::boolean:
      return bits != 0 ? "true" : "false";
  }
  return "?";
}

class Printer {
public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel) {}

  std::string print() {
    out_ = "kernel @" + name_text(kernel_.name) + " real=" + std::string(name_of(kernel_.real));
    if (!kernel_.derivative_of.empty()) out_ += " derivative=@" + name_text(kernel_.derivative_of);
    out_ += "\n";
    std::size_t entry = 0;
    for (const Argument& argument : kernel_.arguments) {
      out_ += "  " + std::string(name_of(argument.role)) + " ";
      if (has_entry_value(argument.role)) out_ += value(kernel_.body.arguments[entry++]) + " ";
      if (argument.role == Role::reduce) out_ += std::string(name_of(argument.reduce)) + " ";
      out_ += name_text(argument.name) + axes(argument.axes) + ": " + to_string(argument.type) + "\n";
    }
    region(kernel_.body, 0);
    out_ += "\n";
    return std::move(out_);
  }

private:
  static std::string value(ValueId id) { return "%" + std::to_string(id); }
  static std::string values(const std::vector<ValueId>& ids) {
    std::string text;
    for (const ValueId id : ids) text += (text.empty() ? "" : ", ") + value(id);
    return text;
  }

  static std::string axes(const std::vector<Axis>& axes) {
    std::string text;
    for (const Axis& axis : axes)
      text += (text.empty() ? "[" : ", ") + name_text(axis.name) + ": " + std::to_string(axis.extent);
    return text.empty() ? text : text + "]";
  }
  static std::string carried(const Region& region) {
    return region.arguments.empty() ? "" : "(" + values(region.arguments) + ") ";
  }

  [[nodiscard]] std::string typed(const Region& region) const {
    std::string text;
    for (const ValueId id : region.arguments)
      text += (text.empty() ? "(" : ", ") + value(id) + ": " + to_string(kernel_.value_types[id]);
    return text.empty() ? text : text + ") ";
  }

  void line(std::size_t indent, const std::string& text) { out_ += std::string(2 * indent, ' ') + text; }

  void region(const Region& region, std::size_t indent) {
    out_ += "{\n";
    for (const Op& op : region.ops) this->op(op, indent + 1);
    line(indent + 1, region.yields.empty() ? "yield\n" : "yield " + values(region.yields) + "\n");
    line(indent, "}");
  }

  void op(const Op& op, std::size_t indent) {
    line(indent, "");
    if (!op.results.empty()) out_ += values(op.results) + " = ";
    out_ += name_of(op.code);
    if (op.code == Opcode::accum_add) {
      out_ += " " + value(op.operands[0]) + " at " + element(op, 1);
    } else if (op.regions.empty()) {
      const Type& type = kernel_.value_types[op.results[0]];
      const std::string operands = this->operands(op, type.scalar);
      out_ += (operands.empty() ? "" : " ") + operands + " : " + to_string(type);
    } else {
      structure(op, indent);
    }
    out_ += "\n";
  }

  [[nodiscard]] std::string operands(const Op& op, Scalar result) const {
    switch (op.code) {
      case Opcode::constant:
        return constant_text(result, op.bits);
      case Opcode::gather:
        return element(op, 0);
      case Opcode::length:
        return "@" + name_text(kernel_.arguments[op.argument].name);
      case Opcode::extract:
        return value(op.operands[0]) + "[" + std::to_string(op.component) + "]";
      default:
        return values(op.operands);
    }
  }

  // The element that the operands from `first` on are the indices of.
  [[nodiscard]] std::string element(const Op& op, std::size_t first) const {
    const std::vector<ValueId> indices(op.operands.begin() + static_cast<std::ptrdiff_t>(first),
                                       op.operands.end());
    return "@" + name_text(kernel_.arguments[op.argument].name) + "[" + values(indices) + "]";
  }

  void structure(const Op& op, std::size_t indent) {
    if (!op.operands.empty()) out_ += " " + values(op.operands);
    if (op.code == Opcode::while_) out_ += " max " + std::to_string(op.max_trips);
    if (op.dispatch) {
      out_ += " dispatch @" + name_text(op.dispatch->name) + " ";
      out_ += name_of(op.dispatch->policy);
    }
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      out_ += (i == 0 ? " -> " : ", ") + to_string(kernel_.value_types[op.results[i]]);
    }
    for (std::size_t i = 0; i < op.regions.size(); ++i) {
      const Region& nested = op.regions[i];
      if (op.code == Opcode::primitive) {
        if (i > 0 && nested.arguments.empty() && nested.ops.empty() && nested.yields.empty()) continue;
        out_ += (i == 0 ? " " : i == 1 ? " jvp " : " vjp ") + typed(nested);
      } else {
        out_ += " " + before_region(op.code, i) + carried(nested);
      }
      region(nested, indent);
    }
  }

  static std::string before_region(Opcode code, std::size_t region) {
    if (code == Opcode::switch_) return "case " + std::to_string(region) + " ";
    if (region == 0) return "";
    return code == Opcode::while_ ? "do " : "else ";
  }

  const Kernel& kernel_;
  std::string out_;
};

}  // namespace

std::string to_text(const Kernel& kernel) { return Printer(kernel).print(); }

}  // namespace eagle::kernel
