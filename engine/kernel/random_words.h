// Random words: the counter-based generator that random_words means.
//
// Philox4x32-10 [Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC11 (2011)]. Key:
// the seed's low and high half. Counter: the number of the block (four words) in words 0 and 1, the sample's
// index in the whole ensemble in words 2 and 3. So a word depends on seed, counter and sample alone.
#pragma once

#include <array>
#include <cstdint>

namespace eagle::kernel {

struct Philox {
  static constexpr std::uint32_t multipliers[2] = {0xD2511F53u, 0xCD9E8D57u};
  static constexpr std::uint32_t key_steps[2] = {0x9E3779B9u, 0xBB67AE85u};
  static constexpr int rounds = 10;
};

// Word `number` of the stream of a seed and a sample.
constexpr std::uint32_t random_word(std::uint64_t seed, std::uint64_t number, std::uint64_t sample) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const std::uint64_t block = number / 4;
  std::array<std::uint32_t, 4> x = {low(block), high(block), low(sample), high(sample)};
  std::array<std::uint32_t, 2> key = {low(seed), high(seed)};
  for (int round = 0; round < Philox::rounds; ++round) {
    const std::uint64_t a = std::uint64_t{Philox::multipliers[0]} * x[0];
    const std::uint64_t b = std::uint64_t{Philox::multipliers[1]} * x[2];
    x = {high(b) ^ x[1] ^ key[0], low(b), high(a) ^ x[3] ^ key[1], low(a)};
    key = {key[0] + Philox::key_steps[0], key[1] + Philox::key_steps[1]};
  }
  return x[number % 4];
}

}  // namespace eagle::kernel
