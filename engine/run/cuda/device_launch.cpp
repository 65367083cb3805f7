#include "engine/run/cuda/device_launch.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace eagle::run::cuda {

std::vector<std::uint64_t> device_parameter(const kernel::Kernel& kernel, const codegen::DeviceCall& call,
                                            std::span<const DeviceArgument> arguments,
                                            std::span<const api::DevicePointer> note_bases) {
  std::vector<std::uint64_t> words(codegen::device_parameter_words(kernel), 0);
  std::memcpy(words.data(), &call, sizeof call);
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    const DeviceArgument& argument = arguments[a];
    const bool by_value = kernel.arguments[a].role == kernel::Role::param;
    words[codegen::device_base_word(a)] = by_value ? argument.bits : argument.address;
    words[codegen::device_stride_word(a)] = static_cast<std::uint64_t>(argument.component_stride);
    words[codegen::device_length_word(a)] = static_cast<std::uint64_t>(argument.length);
  }
  std::copy(note_bases.begin(), note_bases.end(),
            words.begin() + static_cast<std::ptrdiff_t>(codegen::device_notes_word(kernel, 0)));
  return words;
}

// 256 threads fit a multiprocessor whatever registers they use: 256 of 255 are less than its 65,536.
Grid grid_for(std::int64_t samples) {
  constexpr std::int64_t threads = 256, most_blocks = 65'535;
  const std::int64_t blocks = std::clamp<std::int64_t>((samples + threads - 1) / threads, 1, most_blocks);
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(threads)};
}

}  // namespace eagle::run::cuda
