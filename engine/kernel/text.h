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
// Loops, switches and tables:
//
//   kernel @search real=f64
//     read %0 x: f64
//     table curve[row: 4, column: 16]: f64[2]
//     output y: f64
//   {
//     %1 = constant 0 : i64
//     %8 = while %1 max 16 -> i64 (%2) {        the condition, on the values that the loop carries
//       %3 = gather @curve[%1, %2] : f64[2]
//       %4 = extract %3[0] : f64
//       %5 = lt %4, %0 : bool
//       yield %5
//     } do (%6) {
//       %7 = add %6, %6 : i64
//       yield %7
//     }
//     %11 = switch %8 dispatch @modes auto -> f64 case 0 {
//       yield %0
//     } case 1 {
//       %9 = compose %0, %0 : f64[2]
//       %10 = extract %9[1] : f64
//       yield %10
//     }
//     yield %11
//   }
//
// A primitive: what it computes, and how tangents and adjoints go through it, as far as its author says.
//
//     %9 = primitive %0 -> f64 (%1: f64) {
//       %2 = exp %1 : f64
//       yield %2
//     } jvp (%3: f64, %4: f64) {
//       yield %4
//     } vjp (%5: f64, %6: f64) {
//       yield %6
//     }
//
// Grammar; line ends mean nothing, and `// ...` is a comment:
//
//   kernel   = "kernel" "@" name "real" "=" scalar argument* region
//   argument = role [value] name [axes] ":" type     the value where the role has one: not for output and
//   table axes     = "[" name ":" extent ("," name ":" extent)* "]"                                       of
//   a table region   = "{" op* "yield" [values] "}" values   = value ("," value)* op       = value "=" opcode
//   [values] ":" type
//            | value "=" "constant" literal ":" type
//            | value "=" "gather" "@" name "[" values "]" ":" type
//            | value "=" "length" "@" name ":" type
//            | value "=" "extract" value "[" number "]" ":" type
//            | [values "="] "if" value [gives] region "else" region
//            | [values "="] "while" [values] "max" number [gives] [carried] region "do" [carried] region
//            | [values "="] "switch" value ["dispatch" "@" name policy] [gives] ("case" number region)+
//   gives    = "->" type ("," type)*                 one for each result
//   carried  = "(" values ")"                        one for each result; their types are those of `gives`
//   policy   = "auto" | "switch" | "segmented" | "predicated"
//   type     = scalar ["[" extent ["," extent] "]"]
//   name     = letters, digits, _ | '"' characters, \\ \" \xHH '"'
//   value    = "%" number                            numbered as in kernel.proto
//
// Reals print as hexadecimal floats (exact), NaN as `nan`; decimal ones are read too, rounded once. Booleans
// are `true` and `false`. The stated result types are checked against the inferred ones, cases count from 0.
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
