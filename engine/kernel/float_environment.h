// The floating-point environment that kernels are defined in: round to nearest, subnormals kept, traps off.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace eagle::kernel {

// Sets that environment for this thread and puts the caller's back at the end of the scope. A host process
// may have set flush-to-zero (-ffast-math in any of its libraries does), which would change results.
class FloatEnvironment {
public:
#if defined(__SSE2__)
  FloatEnvironment() : saved_(_mm_getcsr()) { _mm_setcsr(standard); }
  ~FloatEnvironment() { _mm_setcsr(saved_); }
#else
  FloatEnvironment() = default;
#endif
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

private:
#if defined(__SSE2__)
  static constexpr unsigned standard = 0x1f80;
  unsigned saved_;
#endif
};

}  // namespace eagle::kernel
