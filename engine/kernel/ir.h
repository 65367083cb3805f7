// The in-memory form of a kernel: what the verifier and the builder make and everything else reads.
//
// A `Kernel` obtained from `verify()` or `KernelBuilder::finish()` satisfies every rule of
// docs/manual/kernels.md; functions that take a `const Kernel&` rely on that and check nothing again.
// Values are plain data without threads or ownership of anything but themselves.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eagle::kernel {

enum class Scalar : std::uint8_t { f64 = 1, f32 = 2, i64 = 3, i32 = 4, boolean = 5 };

constexpr bool is_real(Scalar scalar) { return scalar == Scalar::f64 || scalar == Scalar::f32; }
constexpr bool is_integer(Scalar scalar) { return scalar == Scalar::i64 || scalar == Scalar::i32; }
constexpr int bytes_of(Scalar scalar) {
  switch (scalar) {
    case Scalar::f64:
    case Scalar::i64:
      return 8;
    case Scalar::f32:
    case Scalar::i32:
      return 4;
    case Scalar::boolean:
      return 1;
  }
  return 0;
}
std::string_view name_of(Scalar scalar);  // "f64", "bool", ...

// Scalar (rank 0), vector (rank 1) or row-major matrix (rank 2) of compile-time extents >= 1.
struct Type {
  Scalar scalar = Scalar::f64;
  std::uint8_t rank = 0;
  std::array<std::uint16_t, 2> extents = {1, 1};  // those beyond `rank` are 1

  // Components: 1, extents[0], or extents[0]*extents[1]. At most Limits::components.
  [[nodiscard]] int components() const { return extents[0] * extents[1]; }
  friend bool operator==(const Type&, const Type&) = default;
};
std::string to_string(const Type& type);  // "f64", "f64[3]", "f64[2,3]"

// The numbers are those of proto/eagle/v1/kernel.proto.
enum class Role : std::uint8_t {
  read = 1,
  mutable_ = 2,
  output = 3,
  param = 4,
  terminated = 5,
  table = 6,
  accum = 7,
  reduce = 8,
};
std::string_view name_of(Role role);  // "read", "mutable", ...

constexpr bool has_entry_value(Role role) {
  return role == Role::read || role == Role::mutable_ || role == Role::param || role == Role::terminated;
}
constexpr bool has_plane(Role role) { return role != Role::param; }
// A plane with one element for each sample: it has a say in how many samples a launch has.
constexpr bool is_per_sample(Role role) {
  return role == Role::read || role == Role::mutable_ || role == Role::output || role == Role::terminated;
}
constexpr bool is_committed(Role role) {
  return role == Role::mutable_ || role == Role::output || role == Role::terminated || role == Role::reduce;
}
// A plane whose length is its own, with axes or without.
constexpr bool is_indexed(Role role) { return role == Role::table || role == Role::accum; }
// What samples make together: a step of all of them comes before the next step of any.
constexpr bool is_shared(Role role) { return role == Role::accum || role == Role::reduce; }

// What is made of many values; the numbers are those of the message.
enum class ReduceOp : std::uint8_t { sum = 1, max = 2, min = 3, all = 4, any = 5 };
std::string_view name_of(ReduceOp op);  // "sum"
// Sums, maxima and minima are of numbers, all and any of bools.
constexpr bool can_reduce(ReduceOp op, Scalar scalar) {
  return (op == ReduceOp::all || op == ReduceOp::any) == (scalar == Scalar::boolean);
}
// The bits of the value that changes no result of the op: what a sample counts as that does not take part.
std::uint64_t neutral_bits(ReduceOp op, Scalar scalar);

enum class Opcode : std::uint16_t {
  constant = 1,
  sample_index,
  n_samples,
  step_index,
  add = 10,
  sub,
  mul,
  div,
  neg,
  abs,
  min,
  max,
  sqrt,
  floor_div = 20,
  modulo,
  shift_left,
  shift_right,
  bit_and,
  bit_or,
  bit_xor,
  bit_not,
  eq = 30,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and = 40,
  logical_or,
  logical_xor,
  logical_not,
  select,
  convert = 50,
  if_ = 60,
  while_,
  switch_,
  primitive,
  gather = 70,
  length,
  accum_add,
  compose = 80,
  extract,
  fma = 100,
  pow,
  rsqrt,
  cbrt,
  hypot,
  exp = 110,
  exp2,
  expm1,
  log,
  log2,
  log10,
  log1p,
  erf,
  erfc,
  sin = 120,
  cos,
  tan,
  asin,
  acos,
  atan,
  atan2,
  sinh = 130,
  cosh,
  tanh,
  asinh,
  acosh,
  atanh,
  floor = 140,
  ceil,
  trunc,
  round,
  rint,
  fmod,
  remainder,
  floor_quotient,
  sign = 150,
  copysign,
  fdim,
  clip,
  isnan,
  isinf,
  isfinite,
  random_words = 160,
};
std::string_view name_of(Opcode code);  // as in the text form: "add", "and", "if"

struct Location {
  std::uint32_t file = 0;  // index into Kernel::source_files
  std::uint32_t line = 0;  // from 1; 0: unknown
  std::uint32_t column = 0;
  friend bool operator==(const Location&, const Location&) = default;
};

using ValueId = std::uint32_t;

struct Op;

struct Region {
  std::vector<ValueId> arguments;
  std::vector<Op> ops;
  std::vector<ValueId> yields;
  friend bool operator==(const Region& a, const Region& b);
};

// The author's wish for a switch that is a dispatch group; the numbers are those of the message.
enum class DispatchPolicy : std::uint8_t { automatic = 1, switch_ = 2, segmented = 3, predicated = 4 };
std::string_view name_of(DispatchPolicy policy);  // as in the text form: "auto", "switch", ...
struct Dispatch {
  std::string name;
  DispatchPolicy policy = DispatchPolicy::automatic;
  friend bool operator==(const Dispatch&, const Dispatch&) = default;
};

struct Op {
  Opcode code = Opcode::constant;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;  // 1 for plain ops; structure has as many as its regions yield or carry;
                                 // `accum_add` has none
  // `constant`: the value's bits, zero-extended (f32 in the low 32 bits, bool as 0 or 1). NaNs are
  // canonical: 0x7ff8000000000000 and 0x7fc00000.
  std::uint64_t bits = 0;
  // `if_`: then, else; `while_`: condition, body; `switch_`: one a value; `primitive`: what it computes, jvp,
  // vjp
  std::vector<Region> regions;
  std::uint32_t argument = 0;   // `gather`, `length`, `accum_add`: index of the table among the arguments
  std::uint64_t max_trips = 0;  // `while_`: at least 1
  std::uint32_t component = 0;  // `extract`
  std::optional<Dispatch> dispatch;  // `switch_`
  Location location;
  friend bool operator==(const Op&, const Op&) = default;
};

struct Axis {
  std::string name;
  std::uint32_t extent = 1;
  friend bool operator==(const Axis&, const Axis&) = default;
};

struct Argument {
  std::string name;
  Role role = Role::read;
  Type type;                        // of one sample, or of one element of a table or accumulator
  std::vector<Axis> axes;           // tables, accumulators; empty: one axis of the bound plane's length
  ReduceOp reduce = ReduceOp::sum;  // `reduce`
  friend bool operator==(const Argument&, const Argument&) = default;
};

struct Kernel {
  std::string name;
  Scalar real = Scalar::f64;
  std::vector<Argument> arguments;
  // body.arguments: the entry values, one for each argument with has_entry_value(role), in order.
  // body.yields: the committed values, one for each argument with is_committed(role), in order.
  Region body;
  std::vector<Type> value_types;  // by ValueId
  std::vector<std::string> source_files;
  std::string derivative_of;  // the name of the kernel that this one is a derivative of; empty: of none

  // Index into `arguments` of the mask, or -1. A kernel has at most one.
  [[nodiscard]] int terminated_argument() const;
  // Whether samples make something together: an argument with is_shared(role).
  [[nodiscard]] bool shares() const;
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

// The components of all values: how much work the kernel is for whoever compiles it.
std::size_t scalar_values(const Kernel& kernel);

// How a launch of the kernel touches the plane of each argument, derived from the verified body: `read`
// if the value at launch start is used or may survive, `written` if something is stored. Params: neither.
struct Access {
  bool read = false;
  bool written = false;
  bool used = false;  // the body looks at the value; false where it is only read because it may survive
};
std::vector<Access> accesses(const Kernel& kernel);

}  // namespace eagle::kernel
