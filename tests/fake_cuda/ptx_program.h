// PtxProgram: a module of PTX, decoded for `ptx_machine.h` to run on a CPU.
//
// The part of the language that LLVM writes for our kernels, read by nothing of LLVM: NVIDIA, "PTX ISA", says
// what each instruction means. What is not known is refused, as a driver refuses what is wrong.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace eagle::fake_cuda {

enum class PtxType : std::uint8_t { pred, b8, b16, b32, b64, u8, u16, u32, u64, s8, s16, s32, s64, f32, f64 };
int bits_of(PtxType type);  // 1 for pred
bool is_signed(PtxType type);
bool is_real(PtxType type);

enum class PtxOp : std::uint8_t {
  mov,
  ld,
  st,
  cvt,
  add,
  sub,
  mul_lo,
  mul_hi,
  mul_wide,
  mad_lo,
  mad_wide,
  div,
  rem,
  min,
  max,
  abs,
  neg,
  fma,
  sqrt,
  rcp,
  and_,
  or_,
  xor_,
  not_,
  shl,
  shr,
  selp,
  setp,
  bfe,
  bfi,
  popc,
  clz,
  atom_add,
  atom_min,
  atom_max,
  bra,
  call,
  ret,
};

enum class PtxCompare : std::uint8_t {
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  lo,
  ls,
  hi,
  hs,
  equ,
  neu,
  ltu,
  leu,
  gtu,
  geu,
  num,
  nan
};
enum class PtxRound : std::uint8_t { none, rn, rni, rzi, rmi, rpi };
enum class PtxCombine : std::uint8_t { none, and_, or_, xor_ };

struct PtxOperand {
  enum class Kind : std::uint8_t {
    none,
    reg,        // value: register of the function
    immediate,  // value: bits
    special,    // value: 0 tid.x, 1 ntid.x, 2 ctaid.x, 3 nctaid.x; the y and z of tid and ctaid are 0, of
                // others 1
    global,     // value: offset into the module's globals
    frame,      // value: offset into the function's own bytes: locals, parameters of it and of what it calls
    parameter,  // value: offset into a kernel's parameters
  };
  Kind kind = Kind::none;
  bool negated = false;     // of a predicate
  std::int64_t offset = 0;  // added, of an address
  std::uint64_t value = 0;
};

struct PtxInstruction {
  PtxOp op = PtxOp::ret;
  PtxType type = PtxType::b64;
  PtxType from = PtxType::b64;  // of cvt
  PtxCompare compare = PtxCompare::eq;
  PtxCombine combine = PtxCombine::none;
  PtxRound round = PtxRound::none;
  PtxOperand guard;   // a predicate, or none
  PtxOperand result;  // a register; of st and atom the address is `a`
  PtxOperand a, b, c, d;
  std::uint32_t target = 0;           // bra: instruction; call: function
  std::vector<PtxOperand> arguments;  // call: frame places of arguments; ld, st of vectors: registers
  std::uint32_t line = 0;
};

// The target of a call of cudaGraphSetConditional, which a driver has, where the module declares it.
inline constexpr std::uint32_t set_conditional_function = ~std::uint32_t{0};

struct PtxFunction {
  std::string name;
  bool entry = false;
  std::uint32_t registers = 0;
  std::uint32_t frame_bytes = 0;
  std::uint32_t parameter_bytes = 0;         // of an entry
  std::vector<std::uint32_t> parameters;     // frame places of a function's
  std::int64_t result = -1;                  // frame place, or none
  std::vector<PtxInstruction> instructions;  // ends with ret
};

struct PtxProgram {
  int version = 0;     // 63: .version 6.3
  std::string target;  // "sm_75"
  std::vector<std::byte> globals;
  std::vector<PtxFunction> functions;
  [[nodiscard]] const PtxFunction* entry(std::string_view name) const;
};

// BAD_MESSAGE: line, and what was expected.
StatusOr<PtxProgram> parse_ptx(std::string_view text);

}  // namespace eagle::fake_cuda
