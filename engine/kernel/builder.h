// KernelBuilder: makes kernels from C++ and, through the binding, from Python.
//
//   KernelBuilder b("affine");
//   auto a = b.param("a"), c = b.param("c");
//   auto x = b.scalar("x");
//   b.output("y", b.add(b.mul(a, x), c));
//   StatusOr<Kernel> kernel = b.finish();
//
// Errors stick: after the first one every call returns an invalid value and `finish()` returns that
// error, so a chain needs one check. A builder belongs to one thread. Operand types are checked as they
// are given (the same rules as the verifier's, which runs in `finish()`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/kernel/ir.h"

namespace eagle::kernel {

struct Rule;  // engine/kernel/typing.h

class KernelBuilder {
public:
  // A value of this builder's kernel; cheap to copy, meaningless elsewhere.
  struct Value {
    ValueId id = ~ValueId{0};
    Type type;
    [[nodiscard]] bool valid() const { return id != ~ValueId{0}; }
  };

  // `real` is the type of the kernel's reals: Scalar::f64 or Scalar::f32.
  explicit KernelBuilder(std::string name, Scalar real = Scalar::f64);

  // Index into the kernel's source files (added on first use); later ops carry the location set last.
  std::uint32_t source_file(std::string_view path);
  void at(Location location);

  // Arguments, in order, all before the first op. The value is the one at launch start.
  Value scalar(std::string name);                         // read, the kernel's real type
  Value vector(std::string name, int width);              // read
  Value matrix(std::string name, int rows, int columns);  // read
  Value index(std::string name);                          // read, i64
  Value param(std::string name);                          // by value, real
  Value integer_param(std::string name);                  // by value, i64
  Value state(std::string name, Type type);               // mutable
  Value terminated(std::string name);                     // the mask: false while the sample runs
  void declare_output(std::string name, Type type);       // its value is given by `commit`

  // What the sample commits; the last call for a name counts. A state that is never committed keeps its
  // value. `output` declares and commits in one.
  void commit(std::string_view name, Value value);
  void output(const std::string& name, Value value);

  Value real(double value);           // a constant of the real type, rounded once
  Value integer(std::int64_t value);  // i64
  Value boolean(bool value);
  // Any opcode with operands; `type` is for `convert`. The named calls below are shorthand.
  Value op(Opcode code, const std::vector<Value>& operands, Type type = {});
  Value add(Value a, Value b) { return op(Opcode::add, {a, b}); }
  Value sub(Value a, Value b) { return op(Opcode::sub, {a, b}); }
  Value mul(Value a, Value b) { return op(Opcode::mul, {a, b}); }
  Value div(Value a, Value b) { return op(Opcode::div, {a, b}); }
  Value neg(Value a) { return op(Opcode::neg, {a}); }
  Value lt(Value a, Value b) { return op(Opcode::lt, {a, b}); }
  Value le(Value a, Value b) { return op(Opcode::le, {a, b}); }
  Value gt(Value a, Value b) { return op(Opcode::gt, {a, b}); }
  Value ge(Value a, Value b) { return op(Opcode::ge, {a, b}); }
  Value eq(Value a, Value b) { return op(Opcode::eq, {a, b}); }
  Value ne(Value a, Value b) { return op(Opcode::ne, {a, b}); }
  Value select(Value condition, Value a, Value b) { return op(Opcode::select, {condition, a, b}); }
  Value convert(Value a, Scalar to);

  // An `if`: begin, build the then side, `otherwise`, build the else side, end. `yields` are the values
  // that leave each side, equal in number and types; the results stand for them afterwards.
  void begin_if(Value condition);
  void otherwise(const std::vector<Value>& then_yields);
  std::vector<Value> end_if(const std::vector<Value>& else_yields);

  [[nodiscard]] const Status& status() const { return status_; }
  // The verified kernel, or the first error. The builder is spent.
  StatusOr<Kernel> finish();

private:
  struct Commit {
    std::string name;
    Value value;
  };
  struct OpenIf {
    Op op;  // holds the finished `then` region once `otherwise` was called
    Region enclosing;
    std::vector<Type> then_types;
    bool in_else = false;
  };

  Value fail(Reason reason, std::string message);
  // Whether a call may go on: no error so far, not spent, and all values are this kernel's.
  bool usable(const std::vector<Value>& values, std::string_view user);
  std::optional<Type> checked_type(const Rule& rule, const std::vector<Value>& operands, Type requested);
  bool declare(std::string name, Role role, Type type);
  Value entry(std::string name, Role role, Type type);
  Value constant(Scalar scalar, std::uint64_t bits);
  Value new_value(Type type);
  Value push(Op op, Type type);

  Kernel kernel_;
  Region region_;  // the one being filled
  std::vector<OpenIf> open_;
  std::vector<Commit> commits_;
  Location location_;
  Status status_;
  bool spent_ = false;
};

}  // namespace eagle::kernel
