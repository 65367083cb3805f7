// Waiting without sleeping.
#pragma once

namespace eagle {

// Between two looks at a word that another core will change: leaves more of the core to its sibling and to
// the memory it waits for. Returns after some tens of cycles at most.
inline void pause_a_little() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace eagle
