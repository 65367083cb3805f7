// What a fuzz target defines. It is linked twice: with `replay.cpp`, as a test that runs every input of its
// corpus, and with libFuzzer, which looks for more (tests/fuzz/run.sh).
#pragma once

#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "proto/testing_mutator.h"

// One input. Aborts when a promise is broken, and so do the sanitizers. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace eagle::fuzz {

// Inputs to begin with, the same every time: `replay --seeds DIRECTORY` writes them there.
std::vector<std::string> seeds();

// Ends the process: `text` says which promise was broken.
[[noreturn]] inline void broken(const std::string& text) {
  std::fprintf(stderr, "broken promise: %s\n", text.c_str());
  std::abort();
}

// Changes an input that is a serialized message, as libFuzzer's custom mutators do: mostly a field of it, so
// that it stays a message, sometimes its bytes. Returns the new size, at most `most`.
template <typename Message>
std::size_t mutate_message(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  const google::protobuf::LogSilencer silence;  // it logs names that are not UTF-8
  testing::MessageMutator mutator(seed);
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Message message;
  if (mutator.below(8) != 0 && message.ParseFromString(bytes)) {
    for (std::uint64_t edits = 1 + mutator.below(3); edits > 0; --edits) mutator.change(message);
    bytes = message.SerializeAsString();
  } else {
    bytes = mutator.damaged(bytes);
  }
  if (bytes.size() > most) return size;
  bytes.copy(reinterpret_cast<char*>(data), bytes.size());
  return bytes.size();
}

// Reads a target's own small numbers from an input; zeros after its end.
class Bytes {
public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  [[nodiscard]] bool empty() const { return at_ >= size_; }
  std::uint8_t byte() { return empty() ? 0 : data_[at_++]; }
  // Mostly small; of 64 bits where the input wants it.
  std::int64_t number() {
    const std::uint8_t first = byte();
    if (first < 0xf0) return static_cast<std::int64_t>(first) - 0x40;
    std::uint64_t value = 0;
    for (int left = 8 - (first & 7); left > 0; --left) value = value << 8 | byte();
    return static_cast<std::int64_t>((first & 8) != 0 ? 0 - value : value);
  }

private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

}  // namespace eagle::fuzz
