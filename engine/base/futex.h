// Waiting for a word in memory that several processes may share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace eagle {

// Returns when the word is not `expected`, when somebody wakes it, after `at_most`, or for no reason: look
// again.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::chrono::nanoseconds at_most);
// Wakes everybody who waits for the word.
void futex_wake(std::atomic<std::uint32_t>& word);

}  // namespace eagle
