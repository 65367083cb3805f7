#include "tests/fake_cuda/world.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace eagle::fake_cuda {

const Pretence& pretence() {
  static const Pretence read = [] {
    Pretence made;
    const char* said = std::getenv("EAGLE_FAKE_CUDA");
    std::string_view text = said == nullptr ? "" : said;
    while (!text.empty()) {
      const std::string_view word = text.substr(0, text.find(','));
      text.remove_prefix(std::min(text.size(), word.size() + 1));
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view name = word.substr(0, equals);
      const long long number = std::atoll(std::string(word.substr(equals + 1)).c_str());
      if (name == "devices") made.devices = static_cast<int>(number);
      if (name == "capability") made.capability = static_cast<int>(number);
      if (name == "version") made.version = static_cast<int>(number);
      if (name == "bytes") made.bytes = static_cast<std::uint64_t>(number);
      if (name == "fail_alloc") made.fail_alloc = number;
      if (name == "fail_launch") made.fail_launch = number;
      if (name == "flip_bit") made.flip_bit = number;
      if (name == "fail_load") made.fail_load = number;
      if (name == "fail_instantiate") made.fail_instantiate = number;
      if (name == "fail_change") made.fail_change = number;
      if (name == "single") made.single = number != 0;
      if (name == "init") made.init = static_cast<int>(number);
      if (name == "uuid") made.uuid = static_cast<int>(number);
      if (name == "descriptors") made.descriptors = number != 0;
      if (name == "slow_open") made.slow_open = number;
      if (name == "vanish") made.vanish = word.substr(equals + 1);
      if (name == "seed") made.seed = static_cast<std::uint64_t>(number);
    }
    return made;
  }();
  return read;
}

bool has_vanished() { return !pretence().vanish.empty() && ::access(pretence().vanish.c_str(), F_OK) == 0; }

World& world() {
  static World& made = *new World;  // threads of streams may outlive the end of main
  return made;
}

std::vector<api::ContextRecord*>& current() {
  thread_local std::vector<api::ContextRecord*> made;
  return made;
}

Result in_context(const std::function<Result(api::ContextRecord&)>& call) {
  const std::lock_guard lock(world().mutex);
  if (!world().initialised) return api::not_initialised;
  api::ContextRecord* context = current().empty() ? nullptr : current().back();
  if (context == nullptr || context->retained == 0) return api::invalid_context;
  if (context->ordinal + world().gone == 0 && has_vanished()) return api::unavailable;
  return context->lost != api::success ? context->lost : call(*context);
}

const Allocation* allocation_at(std::uint64_t address, api::DevicePointer* begin) {
  auto after = world().allocations.upper_bound(address);
  if (after == world().allocations.begin()) return nullptr;
  const auto& [first, allocation] = *--after;
  if (begin != nullptr) *begin = first;
  return address < first + allocation.bytes ? &allocation : nullptr;
}

bool is_there(std::uint64_t address, std::uint64_t bytes) {
  api::DevicePointer begin = 0;
  const Allocation* const found = allocation_at(address, &begin);
  return found != nullptr && found->accessible && address + bytes <= begin + found->bytes;
}

}  // namespace eagle::fake_cuda
