#include "tests/fake_cuda/ptx_machine.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

namespace eagle::fake_cuda {
namespace {

using Kind = PtxOperand::Kind;
using Bits = std::uint64_t;

struct Fault {
  PtxFault kind;
  std::string text;
};

Bits low(Bits value, int bits) { return bits == 64 ? value : value & ((Bits{1} << bits) - 1); }
std::int64_t extended(Bits value, int bits) {
  const int unused = 64 - bits;
  return static_cast<std::int64_t>(value << unused) >> unused;
}

// A device's NaNs are its own: whoever looked at their bits would see other ones than on a CPU.
Bits of(double value) { return std::isnan(value) ? 0x7fffffffffffffff : std::bit_cast<Bits>(value); }
Bits of(float value) { return std::isnan(value) ? 0x7fffffff : std::bit_cast<std::uint32_t>(value); }
template <typename Real>
Real real(Bits bits) {
  if constexpr (sizeof(Real) == 8) return std::bit_cast<double>(bits);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

template <typename Real>
Bits arithmetic(PtxOp op, Bits a, Bits b, Bits c) {
  const Real x = real<Real>(a), y = real<Real>(b);
  switch (op) {
    case PtxOp::add:
      return of(x + y);
    case PtxOp::sub:
      return of(x - y);
    case PtxOp::mul_lo:
      return of(x * y);
    case PtxOp::div:
      return of(x / y);
    case PtxOp::fma:
      return of(std::fma(x, y, real<Real>(c)));
    case PtxOp::sqrt:
      return of(std::sqrt(x));
    case PtxOp::rcp:
      return of(Real{1} / x);
    case PtxOp::abs:
      return of(std::fabs(x));
    case PtxOp::neg:
      return std::isnan(x) ? of(x) : of(-x);
    default:
      throw Fault{PtxFault::illegal_address, "an operation that reals do not have"};
  }
}

template <typename T>
bool compared(PtxCompare compare, T x, T y, bool unordered) {
  switch (compare) {
    case PtxCompare::eq:
      return x == y;
    case PtxCompare::ne:
      return !unordered && x != y;
    case PtxCompare::lt:
    case PtxCompare::lo:
      return x < y;
    case PtxCompare::le:
    case PtxCompare::ls:
      return x <= y;
    case PtxCompare::gt:
    case PtxCompare::hi:
      return x > y;
    case PtxCompare::ge:
    case PtxCompare::hs:
      return x >= y;
    case PtxCompare::equ:
      return unordered || x == y;
    case PtxCompare::neu:
      return unordered || x != y;
    case PtxCompare::ltu:
      return unordered || x < y;
    case PtxCompare::leu:
      return unordered || x <= y;
    case PtxCompare::gtu:
      return unordered || x > y;
    case PtxCompare::geu:
      return unordered || x >= y;
    case PtxCompare::num:
      return !unordered;
    case PtxCompare::nan:
      return unordered;
  }
  return false;
}

bool compare(const PtxInstruction& at, Bits a, Bits b) {
  if (at.type == PtxType::f64) {
    const double x = real<double>(a), y = real<double>(b);
    return compared(at.compare, x, y, std::isnan(x) || std::isnan(y));
  }
  if (at.type == PtxType::f32) {
    const float x = real<float>(a), y = real<float>(b);
    return compared(at.compare, x, y, std::isnan(x) || std::isnan(y));
  }
  const int bits = bits_of(at.type);
  if (is_signed(at.type)) return compared(at.compare, extended(a, bits), extended(b, bits), false);
  return compared(at.compare, low(a, bits), low(b, bits), false);
}

template <typename Real>
Real rounded(PtxRound round, Real x) {
  switch (round) {
    case PtxRound::rni:
      return std::nearbyint(x);
    case PtxRound::rzi:
      return std::trunc(x);
    case PtxRound::rmi:
      return std::floor(x);
    case PtxRound::rpi:
      return std::ceil(x);
    default:
      return x;
  }
}

// Saturates; not a number gives 0, and of 64 bits the least one (PTX ISA, cvt).
Bits to_whole(double x, PtxType type) {
  const int bits = bits_of(type);
  if (std::isnan(x)) return bits == 64 ? Bits{1} << 63 : 0;
  if (is_signed(type)) {
    const double most = std::ldexp(1.0, bits - 1);
    if (x >= most) return low(~(Bits{1} << (bits - 1)), bits) & (bits == 64 ? ~Bits{0} >> 1 : ~Bits{0});
    if (x < -most) return low(Bits{1} << (bits - 1), bits);
    return low(static_cast<Bits>(static_cast<std::int64_t>(x)), bits);
  }
  if (x <= 0) return 0;
  if (x >= std::ldexp(1.0, bits)) return low(~Bits{0}, bits);
  return static_cast<Bits>(x);
}

Bits converted(const PtxInstruction& at, Bits a) {
  const int from = bits_of(at.from);
  if (is_real(at.from)) {
    const double x = at.from == PtxType::f64 ? real<double>(a) : static_cast<double>(real<float>(a));
    if (at.type == PtxType::f64) return of(rounded(at.round, x));
    if (at.type == PtxType::f32) {
      return at.from == PtxType::f32 ? of(rounded(at.round, real<float>(a))) : of(static_cast<float>(x));
    }
    return to_whole(rounded(at.round, x), at.type);
  }
  if (at.type == PtxType::f64) {
    return is_signed(at.from) ? of(static_cast<double>(extended(a, from)))
                              : of(static_cast<double>(low(a, from)));
  }
  if (at.type == PtxType::f32) {
    return is_signed(at.from) ? of(static_cast<float>(extended(a, from)))
                              : of(static_cast<float>(low(a, from)));
  }
  const Bits whole = is_signed(at.from) ? static_cast<Bits>(extended(a, from)) : low(a, from);
  return low(whole, bits_of(at.type));
}

Bits whole(const PtxInstruction& at, Bits a, Bits b, Bits c) {
  const int bits = bits_of(at.type);
  const bool is_minus = is_signed(at.type);
  const std::int64_t x = extended(a, bits), y = extended(b, bits);
  const Bits ux = low(a, bits), uy = low(b, bits);
  switch (at.op) {
    case PtxOp::add:
      return a + b;
    case PtxOp::sub:
      return a - b;
    case PtxOp::mul_lo:
      return a * b;
    case PtxOp::mad_lo:
      return a * b + c;
    case PtxOp::mul_wide:
    case PtxOp::mad_wide:
      return (is_minus ? static_cast<Bits>(x * y) : ux * uy) + (at.op == PtxOp::mad_wide ? c : 0);
    case PtxOp::mul_hi: {
      __extension__ using Wide = __int128;
      __extension__ using UWide = unsigned __int128;
      return is_minus ? static_cast<Bits>((static_cast<Wide>(x) * y) >> bits)
                      : static_cast<Bits>((static_cast<UWide>(ux) * uy) >> bits);
    }
    case PtxOp::div:
      if (uy == 0) return ~Bits{0};
      return is_minus ? static_cast<Bits>(y == -1 ? -ux : static_cast<Bits>(x / y)) : ux / uy;
    case PtxOp::rem:
      if (uy == 0) return ~Bits{0};
      return is_minus ? static_cast<Bits>(y == -1 ? 0 : x % y) : ux % uy;
    case PtxOp::min:
      return is_minus ? static_cast<Bits>(std::min(x, y)) : std::min(ux, uy);
    case PtxOp::max:
      return is_minus ? static_cast<Bits>(std::max(x, y)) : std::max(ux, uy);
    case PtxOp::abs:
      return x < 0 ? -a : a;
    case PtxOp::neg:
      return -a;
    case PtxOp::and_:
      return a & b;
    case PtxOp::or_:
      return a | b;
    case PtxOp::xor_:
      return a ^ b;
    case PtxOp::not_:
      return ~a;
    case PtxOp::shl: {
      const Bits count = low(b, 32);
      return count >= static_cast<Bits>(bits) ? 0 : a << count;
    }
    case PtxOp::shr: {
      const Bits count = low(b, 32);
      if (is_minus) return static_cast<Bits>(x >> std::min<Bits>(count, static_cast<Bits>(bits - 1)));
      return count >= static_cast<Bits>(bits) ? 0 : ux >> count;
    }
    case PtxOp::bfe: {
      const int first = static_cast<int>(b & 0xff), length = static_cast<int>(c & 0xff);
      if (length == 0) return 0;
      const int last = std::min(first + length, bits);
      if (first >= bits) return is_minus && x < 0 ? ~Bits{0} : 0;
      const Bits field = low(ux >> first, last - first);
      return is_minus ? static_cast<Bits>(extended(field, last - first)) : field;
    }
    case PtxOp::popc:
      return static_cast<Bits>(std::popcount(ux));
    case PtxOp::clz:
      return static_cast<Bits>(std::countl_zero(ux) - (64 - bits));
    default:
      throw Fault{PtxFault::illegal_address, "an operation that whole numbers do not have"};
  }
}

class Machine {
public:
  explicit Machine(const PtxLaunch& launch) : launch_(launch), stack_(std::size_t{1} << 20) {}

  std::uint64_t run(std::uint32_t block, std::uint32_t thread) {
    block_ = block;
    thread_ = thread;
    top_ = 0;
    call(*launch_.entry, nullptr);
    return executed_;
  }

private:
  struct Frame {
    const PtxFunction* function = nullptr;
    Bits* registers = nullptr;
    std::byte* bytes = nullptr;
  };

  std::byte* take(std::size_t bytes) {
    bytes = (bytes + 15) / 16 * 16;
    if (top_ + bytes > stack_.size()) throw Fault{PtxFault::illegal_address, "the stack is full"};
    std::byte* taken = stack_.data() + top_;
    top_ += bytes;
    return taken;
  }

  Frame enter(const PtxFunction& function) {
    Frame frame;
    frame.function = &function;
    frame.registers = reinterpret_cast<Bits*>(take(8 * function.registers));
    frame.bytes = take(function.frame_bytes);
    return frame;
  }

  Bits value(const Frame& frame, const PtxOperand& operand) const {
    switch (operand.kind) {
      case Kind::reg:
        return operand.negated ? frame.registers[operand.value] ^ 1 : frame.registers[operand.value];
      case Kind::immediate:
        return operand.value;
      case Kind::special: {
        const Bits known[] = {thread_, launch_.threads, block_, launch_.blocks};
        return known[operand.value];
      }
      case Kind::global:
        return reinterpret_cast<Bits>(launch_.globals) + operand.value;
      case Kind::frame:
        return reinterpret_cast<Bits>(frame.bytes) + operand.value;
      case Kind::parameter:
        return reinterpret_cast<Bits>(launch_.parameters.data()) + operand.value;
      case Kind::none:
        return 0;
    }
    return 0;
  }

  static bool inside(Bits address, std::size_t bytes, const void* begin, std::size_t size) {
    const Bits first = reinterpret_cast<Bits>(begin);
    return address >= first && address - first <= size && bytes <= size - (address - first);
  }

  bool reachable(Bits address, std::size_t bytes) {
    const auto holds = [&](const MemoryRange& range) {
      return address >= range.begin && address + bytes <= range.end;
    };
    if (last_ < launch_.memory.size() && holds(launch_.memory[last_])) return true;
    if (inside(address, bytes, stack_.data(), stack_.size()) ||
        inside(address, bytes, launch_.parameters.data(), launch_.parameters.size()) ||
        inside(address, bytes, launch_.globals, launch_.program->globals.size()))
      return true;
    const auto after = std::upper_bound(launch_.memory.begin(), launch_.memory.end(), address,
                                        [](Bits one, const MemoryRange& range) { return one < range.begin; });
    if (after == launch_.memory.begin() || !holds(*(after - 1))) return false;
    last_ = static_cast<std::size_t>(after - launch_.memory.begin()) - 1;
    return true;
  }

  std::byte* memory(const Frame& frame, const PtxInstruction& at, std::size_t bytes, std::size_t count = 1) {
    const Bits address = value(frame, at.a) + static_cast<Bits>(at.a.offset);
    const auto where = [&] {
      return "block " + std::to_string(block_) + ", thread " + std::to_string(thread_) + ", line " +
             std::to_string(at.line) + " of the PTX: address " + std::to_string(address);
    };
    if (address % (bytes * count) != 0) throw Fault{PtxFault::misaligned_address, where()};
    if (!reachable(address, bytes * count)) throw Fault{PtxFault::illegal_address, where()};
    return reinterpret_cast<std::byte*>(address);
  }

  void call(const PtxFunction& function, const Frame* caller, const PtxInstruction* site = nullptr) {
    const std::size_t before = top_;
    Frame frame = enter(function);
    if (site != nullptr) {
      for (std::size_t i = 0; i < function.parameters.size() && i < site->arguments.size(); ++i)
        std::memcpy(frame.bytes + function.parameters[i], caller->bytes + site->arguments[i].value, 8);
    }
    const std::vector<PtxInstruction>& code = function.instructions;
    for (std::size_t next = 0; next < code.size();) {
      const PtxInstruction& at = code[next++];
      if (++executed_ > launch_.most_instructions) throw Fault{PtxFault::out_of_time, "it runs for too long"};
      if (at.guard.kind != Kind::none && (value(frame, at.guard) & 1) == 0) continue;
      if (at.op == PtxOp::ret) break;
      if (at.op == PtxOp::bra) {
        next = at.target;
      } else if (at.op == PtxOp::call && at.target == set_conditional_function) {
        set_conditional(frame, at);
      } else if (at.op == PtxOp::call) {
        call(launch_.program->functions[at.target], &frame, &at);
      } else {
        execute(frame, at);
      }
    }
    if (site != nullptr && site->result.kind == Kind::frame && function.result >= 0)
      std::memcpy(caller->bytes + site->result.value, frame.bytes + function.result, 8);
    top_ = before;
  }

  void set_conditional(const Frame& frame, const PtxInstruction& at) {
    std::uint64_t handle = 0;
    std::uint32_t value = 0;
    std::memcpy(&handle, frame.bytes + at.arguments.at(0).value, sizeof handle);
    std::memcpy(&value, frame.bytes + at.arguments.at(1).value, sizeof value);
    if (!launch_.set_conditional || !launch_.set_conditional(handle, value))
      throw Fault{PtxFault::illegal_address, "cudaGraphSetConditional of a handle that is none"};
  }

  void execute(const Frame& frame, const PtxInstruction& at) {
    switch (at.op) {
      case PtxOp::ld:
        return load(frame, at);
      case PtxOp::st:
        return store(frame, at);
      case PtxOp::atom_add:
      case PtxOp::atom_min:
      case PtxOp::atom_max:
        return atomic(frame, at);
      default:
        break;
    }
    if (!at.arguments.empty()) return halves(frame, at);
    const Bits a = value(frame, at.a), b = value(frame, at.b), c = value(frame, at.c);
    frame.registers[at.result.value] = computed(frame, at, a, b, c);
  }

  Bits computed(const Frame& frame, const PtxInstruction& at, Bits a, Bits b, Bits c) const {
    const int bits = bits_of(at.type);
    switch (at.op) {
      case PtxOp::mov:
        return low(a + static_cast<Bits>(at.a.offset), bits);
      case PtxOp::cvt:
        return converted(at, a);
      case PtxOp::selp:
        return low((c & 1) != 0 ? a : b, bits);
      case PtxOp::setp: {
        const Bits holds = compare(at, a, b) ? 1 : 0;
        if (at.combine == PtxCombine::and_) return holds & c & 1;
        if (at.combine == PtxCombine::or_) return (holds | c) & 1;
        return at.combine == PtxCombine::xor_ ? (holds ^ c) & 1 : holds;
      }
      case PtxOp::bfi: {  // a into b, at c, as many bits as d
        const int first = static_cast<int>(c & 0xff), length = static_cast<int>(value(frame, at.d) & 0xff);
        if (length == 0 || first >= bits) return low(b, bits);
        const Bits mask = low(low(~Bits{0}, std::min(length, 64)) << first, bits);
        return low((b & ~mask) | ((a << first) & mask), bits);
      }
      default:
        break;
    }
    if (at.type == PtxType::f64) return arithmetic<double>(at.op, a, b, c);
    if (at.type == PtxType::f32) return arithmetic<float>(at.op, a, b, c);
    const bool wide = at.op == PtxOp::mul_wide || at.op == PtxOp::mad_wide;
    return low(whole(at, a, b, c), wide ? 2 * bits : bits);
  }

  // mov of one value to or from two.
  void halves(const Frame& frame, const PtxInstruction& at) const {
    const int bits = bits_of(at.type) / static_cast<int>(at.arguments.size());
    if (at.result.kind == Kind::none) {
      const Bits all = value(frame, at.a);
      for (std::size_t i = 0; i < at.arguments.size(); ++i)
        frame.registers[at.arguments[i].value] = low(all >> (static_cast<int>(i) * bits), bits);
      return;
    }
    Bits all = 0;
    for (std::size_t i = 0; i < at.arguments.size(); ++i)
      all |= low(value(frame, at.arguments[i]), bits) << (static_cast<int>(i) * bits);
    frame.registers[at.result.value] = all;
  }

  void load(const Frame& frame, const PtxInstruction& at) {
    const std::size_t bytes = static_cast<std::size_t>(bits_of(at.type)) / 8;
    const std::size_t count = std::max<std::size_t>(at.arguments.size(), 1);
    const std::byte* from = memory(frame, at, bytes, count);
    for (std::size_t i = 0; i < count; ++i) {
      Bits loaded = 0;
      std::memcpy(&loaded, from + i * bytes, bytes);
      if (is_signed(at.type)) loaded = static_cast<Bits>(extended(loaded, bits_of(at.type)));
      frame.registers[at.arguments.empty() ? at.result.value : at.arguments[i].value] = loaded;
    }
  }

  void store(const Frame& frame, const PtxInstruction& at) {
    const std::size_t bytes = static_cast<std::size_t>(bits_of(at.type)) / 8;
    const std::size_t count = std::max<std::size_t>(at.arguments.size(), 1);
    std::byte* to = memory(frame, at, bytes, count);
    for (std::size_t i = 0; i < count; ++i) {
      Bits stored = value(frame, at.arguments.empty() ? at.b : at.arguments[i]);
      const bool in_frame = inside(reinterpret_cast<Bits>(to), bytes, stack_.data(), stack_.size());
      if (launch_.flips_bit && !in_frame && !std::exchange(flipped_, true)) stored ^= 1;
      std::memcpy(to + i * bytes, &stored, bytes);
    }
  }

  void atomic(const Frame& frame, const PtxInstruction& at) {
    const std::size_t bytes = static_cast<std::size_t>(bits_of(at.type)) / 8;
    std::byte* place = memory(frame, at, bytes);
    Bits old = 0;
    std::memcpy(&old, place, bytes);
    PtxInstruction plain = at;
    plain.op = at.op == PtxOp::atom_add ? PtxOp::add : at.op == PtxOp::atom_min ? PtxOp::min : PtxOp::max;
    const Bits made = computed(frame, plain, old, value(frame, at.b), 0);
    std::memcpy(place, &made, bytes);
    frame.registers[at.result.value] = old;
  }

  const PtxLaunch& launch_;
  std::vector<std::byte> stack_;
  std::size_t top_ = 0;
  std::size_t last_ = 0;
  std::uint32_t block_ = 0;
  std::uint32_t thread_ = 0;
  std::uint64_t executed_ = 0;
  bool flipped_ = false;
};

}  // namespace

PtxOutcome run_ptx(const PtxLaunch& launch) {
  std::vector<std::uint64_t> order(std::uint64_t{launch.blocks} * launch.threads);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::mt19937_64 random(launch.seed);
  std::shuffle(order.begin(), order.end(), random);
  Machine machine(launch);
  PtxOutcome outcome;
  try {
    for (const std::uint64_t one : order) {
      outcome.instructions = machine.run(static_cast<std::uint32_t>(one / launch.threads),
                                         static_cast<std::uint32_t>(one % launch.threads));
    }
  } catch (const Fault& fault) {
    outcome.fault = fault.kind;
    outcome.text = fault.text;
  }
  return outcome;
}

}  // namespace eagle::fake_cuda
