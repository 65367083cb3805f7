// The text form of a kernel: for people, tests and `Kernel.ir`. It reads back to the same kernel
// (locations and source files excepted).
//
//   kernel @oscillator real=f64
//     mutable %0 x: f64
//     param %1 dt: f64
//     terminated %2 done: bool
//     output y: f64
//   {
//     %3 = mul %1, %0 : f64
//     %4 = constant 0x1.8p+1 : f64
//     %5 = lt %3, %4 : bool
//     %8, %9 = if %5 -> f64, bool {
//       %6 = add %3, %4 : f64
//       yield %6, %5
//     } else {
//       %7 = sub %3, %4 : f64
//       yield %7, %2
//     }
//     yield %8, %9, %3
//   }
//
// Grammar; line ends mean nothing, and `// ...` is a comment:
//
//   kernel   = "kernel" "@" name "real" "=" scalar argument* region
//   argument = role [value] name ":" type            the value where the role has one: all but output
//   region   = "{" op* "yield" [value ("," value)*] "}"
//   op       = value "=" opcode [operand] ("," value)* ":" type
//            | [results "="] "if" value ["->" type ("," type)*] region "else" region
//   operand  = value | literal                       a literal after "constant" only
//   type     = scalar ["[" extent ["," extent] "]"]
//   name     = letters, digits, _ | '"' characters, \\ \" \xHH '"'
//   value    = "%" number                            numbered as in kernel.proto
//
// Reals print as hexadecimal floats (exact), NaN as `nan`; decimal ones are read too, rounded once. Booleans
// are `true` and `false`. The stated result types are checked against the inferred ones.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/kernel/ir.h"

namespace eagle::kernel {

std::string to_text(const Kernel& kernel);

// Parses and verifies; errors begin with line and column ("3:12: expected ...").
StatusOr<Kernel> from_text(std::string_view text);

}  // namespace eagle::kernel
