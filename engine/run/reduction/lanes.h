// Lanes: 64 bytes of numbers that the compiler keeps in as many vector registers as the CPU needs.
//
// Everything here is inlined into functions that are compiled once for each level of vector instructions
// (reduction.cpp), so it takes and gives vectors by reference: no call passes one in registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define EAGLE_INLINE [[gnu::always_inline]] inline

namespace eagle::run::lanes {

template <typename T, std::size_t Bytes>
struct Pack {
  typedef T type __attribute__((vector_size(Bytes)));
};
template <typename T>
using Lanes = typename Pack<T, 64>::type;
template <typename T>
constexpr int width = 64 / sizeof(T);

// Signed integers as wide as T, for masks and bits.
template <typename T>
using Integer = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;

template <typename T>
EAGLE_INLINE void load(const T* from, Lanes<T>& to) {
  std::memcpy(&to, from, sizeof(to));  // at any alignment
}

// The sum of all lanes: b[i] += b[i + s] for s = half of them, a quarter, ..., 1.
template <typename T, std::size_t Bytes>
EAGLE_INLINE T halved_sum(const typename Pack<T, Bytes>::type& b) {
  if constexpr (Bytes == 2 * sizeof(T)) {
    return b[0] + b[1];
  } else {
    typename Pack<T, Bytes / 2>::type low, high;
    std::memcpy(&low, &b, Bytes / 2);
    std::memcpy(&high, reinterpret_cast<const char*>(&b) + Bytes / 2, Bytes / 2);
    low += high;
    return halved_sum<T, Bytes / 2>(low);
  }
}

}  // namespace eagle::run::lanes
