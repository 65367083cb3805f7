// Derivatives of kernels as kernels: the reverse (vjp) and the forward (jvp) derivative of one step.
//
// Both take a kernel that verified and give one that verified: a program like any other, which is printed,
// sent, compiled and launched as any other. What each operation's derivative is, ties included, is in
// rules.h.
//
// The derivative of kernel f reads the inputs of f as they were when the step of f began, under the names
// that they have there, and beside them planes of its own:
//
//   argument of f          vjp: in -> out                              jvp: in -> out
//   read x, in wrt         -> bar_x, output (or added to, see below)   dot_x, read
//   param p, in wrt        -> bar_p, output (N,) or one sum            dot_p, param
//   mutable s, in wrt      bar_s, mutable: of s after -> s before      dot_s, mutable: of s before -> s after
//   mutable s, else        bar_s, read                                 -> dot_s, output
//   output y               bar_y, read                                 -> dot_y, output
//   table t, in wrt        -> bar_t, accum: added to                   dot_t, table
//   accum h                bar_h, table: stays as it is                -> dot_h, accum: added to
//   (where the kernel asks for its length: h, a table that is not looked at)
//   reduce r, a sum        bar_r, table of one element                 -> dot_r, reduce
//   reduce r, an extreme   bar_r, and first_r, an i64 table of one:    (refused)
//                          the sample that r is of (Options::extremes)
//
// Only real arguments have such planes. A mask is read as a plane: a sample that is stopped adds nothing to
// what is read and to params (0 is stored), and passes the plane of a mutable on as it is.
//
// The bits of a derivative are fixed, as those of any kernel are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/kernel/ir.h"
#include "engine/kernel/verify.h"

namespace eagle::kernel::diff {

struct Options {
  std::vector<std::string> wrt = {};  // arguments by name; empty: all that `is_differentiable` names
  // vjp: bar_<param> is one number for all samples, summed in the fixed order of Role::reduce, instead of one
  // a sample.
  bool sum_params = false;
  // vjp: read arguments whose bar_ plane is added to (a mutable) instead of overwritten (an output).
  std::vector<std::string> accumulate = {};
  // vjp: real maxima and minima over the samples (Role::reduce) have a derivative: whoever launches it says
  // in `first_r` which sample the value is of; of several equal ones the first. A number that no sample has
  // means that none is asked about. Without this such kernels are refused: no sample knows who won.
  bool extremes = false;
  // vjp: arguments of whose value after the step nobody asks: their adjoint is 0, and has no part in
  // anything. An infinite slope on the way to one of them thus makes no NaN. Outputs and reductions have no
  // bar_ plane then; that of a mutable in wrt is still stored.
  std::vector<std::string> unasked = {};
  // step_index() becomes the value of an i64 param, the last argument: for whoever goes back over the steps
  // of a run. Without effect where the kernel does not ask for its step.
  bool step_param = false;
  Limits limits = {};
};

enum class Part : std::uint8_t {
  primal,  // an input of the kernel, at the start of its step
  bar,     // an adjoint
  dot,     // a tangent
  step,    // the param of `Options::step_param`
  first,   // the number of the sample that a maximum or minimum is of
  term,    // of `terms`: what a sample gives to it
};
std::string_view name_of(Part part);  // "primal", "bar", ...

// What an argument of a derivative is.
struct Plane {
  Part part = Part::primal;
  std::size_t argument = 0;  // of the kernel that was differentiated; 0 for a step
  // Of a primal: whether the derivative looks at it. Where it does not, any plane of the right kind does.
  bool needed = true;
};

struct Derivative {
  Kernel kernel;              // `derivative_of` is the kernel's name
  std::vector<Plane> planes;  // one for each argument of `kernel`
};

// Whether `wrt` may name this argument: a real one that is read, mutable, a param or a table.
bool is_differentiable(const Argument& argument);

// Errors: UNKNOWN_NAME for a name that no argument has, BAD_VALUE for one that has no derivative, for a
// kernel without anything to differentiate, and for what cannot be (a maximum over samples, a loop of more
// than 2^39 trips), KERNEL_LIMIT for a derivative over a limit of kernels and for a loop that carries too
// much to keep checkpoints of. Each names the argument or the place in the source, and the cure.
StatusOr<Derivative> vjp(const Kernel& kernel, const Options& options = {});
StatusOr<Derivative> jvp(const Kernel& kernel, const Options& options = {});

// Whether an argument is a real maximum or minimum over the samples.
bool is_extreme(const Argument& argument);

// What the samples give to the extremes of the kernel, which has some: a kernel that reads its inputs as they
// were when its step began, and writes an output `term_r` for each of them. A sample that is stopped gives
// what changes no result.
StatusOr<Derivative> terms(const Kernel& kernel, const Limits& limits = {});

// The most that a loop which is gone through backwards may keep of its carried values, in components.
inline constexpr std::size_t most_checkpoint_components = 1024;

}  // namespace eagle::kernel::diff
