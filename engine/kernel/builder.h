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
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/kernel/ir.h"

namespace eagle::kernel {

struct Rule;    // engine/kernel/typing.h
struct Stated;  // engine/kernel/typing.h

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
  [[nodiscard]] Scalar real_type() const { return kernel_.real; }

  // Marks the kernel as a derivative (vjp, jvp) of the one with this name.
  void derivative_of(std::string_view kernel) { kernel_.derivative_of = kernel; }

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
  // A lookup of elements of `type`, read by `gather`. Without axes it is as long as the plane that is bound.
  void table(std::string name, Type type, std::vector<Axis> axes = {});

  // A plane of elements of `type` that `accum_add` adds to, as long as it is; axes as for a table.
  void accumulator(std::string name, Type type, std::vector<Axis> axes = {});
  // One number for all samples; each commits its own.
  void declare_reduction(std::string name, Type type, ReduceOp op);

  // What the sample commits; the last call for a name counts. A state that is never committed keeps its
  // value. `output` declares and commits in one.
  void commit(std::string_view name, Value value);
  void output(const std::string& name, Value value);

  Value real(double value);           // a constant of the real type, rounded once
  Value integer(std::int64_t value);  // i64
  Value boolean(bool value);
  Value sample_index() { return op(Opcode::sample_index, {}); }  // of the whole ensemble, i64
  Value n_samples() { return op(Opcode::n_samples, {}); }
  Value step_index() { return op(Opcode::step_index, {}); }
  // Any opcode with operands; `type` is for `convert` and `compose`. The named calls below are shorthand.
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
  // The element of a table at one i64 an axis; an index outside is clamped.
  Value gather(std::string_view table, const std::vector<Value>& indices);
  // How many elements a table or accumulator has, i64.
  Value length(std::string_view indexed);
  // A vector or matrix from its components row by row, and one of them back.
  Value compose(const std::vector<Value>& components, Type type) {
    return op(Opcode::compose, components, type);
  }
  Value extract(Value a, std::uint32_t component);
  // Adds to the element of an accumulator at one i64 an axis; outside of it nothing is added.
  void accum_add(std::string_view accumulator, Value value, const std::vector<Value>& indices);

  // An `if`: begin, build the then side, `otherwise`, build the else side, end. `yields` are the values
  // that leave each side, equal in number and types; the results stand for them afterwards.
  void begin_if(Value condition);
  void otherwise(const std::vector<Value>& then_yields);
  std::vector<Value> end_if(const std::vector<Value>& else_yields);

  // A loop: begin with what it carries, build the condition on the values that `begin_while` gives, then the
  // body on those that `while_condition` gives; `next` are the values of the next trip. The body runs while
  // the condition holds, at most `max_trips` times; the results are the carried values afterwards.
  std::vector<Value> begin_while(const std::vector<Value>& initial, std::uint64_t max_trips);
  std::vector<Value> while_condition(Value holds);
  std::vector<Value> end_while(const std::vector<Value>& next);

  // A switch over an i64: case 0 is open after `begin_switch`, `next_case` ends one and opens the next. All
  // yield the same types; a selector outside takes the nearest case.
  void begin_switch(Value selector, std::optional<Dispatch> dispatch = std::nullopt);
  void next_case(const std::vector<Value>& yields);
  std::vector<Value> end_switch(const std::vector<Value>& yields);

  // A primitive: what it computes, then its rules for tangents (`jvp`) and adjoints (`vjp`), those that there
  // are. Each begins with values of its own, and sees no others: the operands, and behind them the tangents
  // of the real operands, or the adjoints of the real results. It yields the results; the tangents of the
  // real results; the adjoints of the real operands.
  std::vector<Value> begin_primitive(const std::vector<Value>& operands);
  std::vector<Value> primitive_jvp(const std::vector<Value>& results);  // ends what it computes
  std::vector<Value> primitive_vjp(const std::vector<Value>& yields);   // ends what it computes, or the jvp
  std::vector<Value> end_primitive(const std::vector<Value>& yields);

  // Whether a value may have that type; an error sticks, with `user` in front.
  bool accepts(const Type& type, std::string_view user) { return usable({}, user) && check_type(type, user); }
  // Records an error of a layer above as the first one, unless there is one; the message names what was
  // expected and found. Gives an invalid value.
  Value refuse(std::string message) { return fail(Reason::malformed_kernel, std::move(message)); }
  [[nodiscard]] const Status& status() const { return status_; }
  // The verified kernel, or the first error. The builder is spent.
  StatusOr<Kernel> finish();

private:
  struct Commit {
    std::string name;
    Value value;
  };
  // An op with regions that is still being built; `op.regions` are those that have ended.
  struct Open {
    Op op;
    Region enclosing;
    std::vector<Type> yields;    // what a loop carries, or what the first region of another op yields
    std::vector<Type> operands;  // of a primitive
  };

  Value fail(Reason reason, std::string message);
  // Whether a call may go on: no error so far, not spent, and all values are this kernel's.
  bool usable(const std::vector<Value>& values, std::string_view user);
  bool check_type(const Type& type, std::string_view user);
  std::optional<Type> checked_type(const Rule& rule, const std::vector<Value>& operands,
                                   const Stated& stated);
  Value push_typed(Op op, const std::vector<Value>& operands, const Stated& stated);
  bool declare(Argument argument);
  Value entry(std::string name, Role role, Type type);
  // The argument of that name and role, or null after an error that names `user`.
  const Argument* find_indexed(std::string_view name, Role role, std::string_view user);
  Value constant(Scalar scalar, std::uint64_t bits);
  Value new_value(Type type);
  Value push(Op op, Type type);

  bool begin(Op op, const std::vector<Value>& operands);
  bool innermost_is(Opcode code, std::size_t ended_regions) const;
  bool end_region(const std::vector<Value>& yields, std::string_view user);
  std::vector<Value> carry();
  bool end_primitive_region(const std::vector<Value>& yields, std::string_view user);
  std::vector<Value> begin_primitive_region(std::size_t region);
  std::vector<Value> end();

  Kernel kernel_;
  Region region_;  // the one being filled
  std::vector<Open> open_;
  // How many values each open loop carries. Kept up after an error too: a caller may index what
  // `while_condition` returns.
  std::vector<std::size_t> carried_;
  std::vector<Commit> commits_;
  Location location_;
  Status status_;
  bool spent_ = false;
};

}  // namespace eagle::kernel
