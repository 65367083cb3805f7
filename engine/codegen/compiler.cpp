#include "engine/codegen/compiler.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <fcntl.h>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "eagle/v1/compile.pb.h"
#include "engine/codegen/helper_process.h"
#include "engine/kernel/wire.h"

namespace eagle::codegen {
namespace {

// What a cached piece of code is known by: content hash and target.
using Key = std::pair<std::string, std::string>;

struct Level {
  std::string_view name;
  bool supported;
};

std::array<Level, 4> levels() {
#if defined(__x86_64__)
  return {Level{"x86-64", true}, Level{"x86-64-v2", __builtin_cpu_supports("x86-64-v2") != 0},
          Level{"x86-64-v3", __builtin_cpu_supports("x86-64-v3") != 0},
          Level{"x86-64-v4", __builtin_cpu_supports("x86-64-v4") != 0}};
#else
  return {};
#endif
}

}  // namespace

StatusOr<Target> default_target() {
  const char* forced = std::getenv("EAGLED_CPU_TARGET");
  if (forced == nullptr || *forced == '\0') return Target{};
  for (const Level& level : levels()) {
    if (level.name != forced) continue;
    if (level.supported) return Target{forced};
    return Status(Reason::bad_value, "EAGLED_CPU_TARGET=" + std::string(forced) +
                                         " needs instructions that this CPU does not have; unset it, or name a "
                                         "narrower one (x86-64, x86-64-v2, x86-64-v3, x86-64-v4)");
  }
  return Status(Reason::bad_value, "EAGLED_CPU_TARGET=" + std::string(forced) +
                                       " is not a target; known: x86-64, x86-64-v2, x86-64-v3 (AVX2), x86-64-v4 "
                                       "(AVX-512), or unset for this machine");
}

Code::~Code() {
  if (image_ != nullptr) ::munmap(image_, bytes_);
}

struct Compiler::State {
  struct Entry {
    std::shared_ptr<const Code> code;  // null while it is being compiled
    std::list<Key>::iterator position; // in `order`; valid with code
  };

  explicit State(Options chosen) : options(std::move(chosen)), helper(options.helper, options.timeout) {}

  void remember(const Key& key, std::shared_ptr<const Code> code) {
    cached_bytes += code->bytes();
    order.push_front(key);
    entries[key] = Entry{std::move(code), order.begin()};
    while (cached_bytes > options.cache_bytes && order.size() > 1) {
      const auto last = entries.find(order.back());
      cached_bytes -= last->second.code->bytes();
      entries.erase(last);
      order.pop_back();
    }
  }

  const Options options;
  HelperProcess helper;                // serialises its callers itself

  std::mutex mutex;                    // guards all below
  std::condition_variable changed;     // an entry was filled or dropped
  std::map<Key, Entry> entries;
  std::list<Key> order;                // most recently used first
  std::uint64_t cached_bytes = 0;
  Counters counters;
};

Compiler::Compiler() : Compiler(Options()) {}
Compiler::Compiler(Options options) : state_(std::make_unique<State>(std::move(options))) {}
Compiler::~Compiler() = default;

StatusOr<Compiler::Compiled> Compiler::compile(const kernel::Kernel& kernel, const Target& target) {
  const Key key{kernel::content_hash(kernel), target.cpu};
  {
    std::unique_lock lock(state_->mutex);
    while (true) {
      const auto found = state_->entries.find(key);
      if (found == state_->entries.end()) break;
      if (found->second.code != nullptr) {
        state_->order.splice(state_->order.begin(), state_->order, found->second.position);
        ++state_->counters.hits;
        return Compiled{found->second.code, true};
      }
      state_->changed.wait(lock);  // ends: whoever compiles it is bounded by the helper's timeout
    }
    state_->entries[key] = {};
    ++state_->counters.misses;
  }
  StatusOr<std::shared_ptr<const Code>> code = compile_now(kernel, target);
  const std::lock_guard lock(state_->mutex);
  state_->entries.erase(key);
  if (code.ok()) state_->remember(key, *code);
  state_->changed.notify_all();
  if (!code.ok()) return code.status().within("kernel '" + kernel.name + "'");
  return Compiled{*std::move(code), false};
}

StatusOr<std::shared_ptr<const Code>> Compiler::compile_now(const kernel::Kernel& kernel, const Target& target) {
  v1::CompileRequest request;
  kernel::to_message(kernel, *request.mutable_kernel());
  request.set_cpu(target.cpu);
  v1::CompileReply reply;
  EAGLE_ASSIGN_OR_RETURN(const UniqueFd image, state_->helper.call(request, reply));

  struct stat file {};
  if (::fstat(image.get(), &file) != 0 || static_cast<std::uint64_t>(file.st_size) != reply.image_bytes() ||
      reply.entry_offset() >= reply.image_bytes()) {
    return Status(Reason::compile_failed, "the compile helper sent an image of another size than it said");
  }
  constexpr int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
  if ((::fcntl(image.get(), F_GET_SEALS) & seals) != seals) {
    return Status(Reason::compile_failed, "the compile helper sent an image that is not sealed");
  }
  std::shared_ptr<Code> code(new Code());
  void* mapped = ::mmap(nullptr, reply.image_bytes(), PROT_READ | PROT_EXEC, MAP_PRIVATE, image.get(), 0);
  if (mapped == MAP_FAILED) return Status(Reason::out_of_memory, "cannot map compiled code");
  code->image_ = mapped;
  code->bytes_ = reply.image_bytes();
  code->function_ = reinterpret_cast<KernelFunction>(static_cast<std::byte*>(mapped) + reply.entry_offset());
  code->hash_ = kernel::content_hash(kernel);
  code->cpu_ = reply.cpu();
  code->lanes_ = static_cast<int>(reply.lanes());
  code->compile_s_ = reply.compile_s();
  return std::shared_ptr<const Code>(std::move(code));
}

StatusOr<std::string> Compiler::listing(const kernel::Kernel& kernel, const Target& target, std::string_view what) {
  v1::CompileRequest request;
  kernel::to_message(kernel, *request.mutable_kernel());
  request.set_cpu(target.cpu);
  if (what != "llvm" && what != "assembly") {
    return Status(Reason::bad_value, "no listing '" + std::string(what) + "'; there are llvm and assembly");
  }
  request.set_listing(what == "llvm" ? v1::LISTING_LLVM : v1::LISTING_ASSEMBLY);
  v1::CompileReply reply;
  EAGLE_RETURN_IF_ERROR(state_->helper.call(request, reply).status());
  return reply.listing();
}

Compiler::Counters Compiler::counters() const {
  const std::lock_guard lock(state_->mutex);
  Counters counters = state_->counters;
  counters.cached = state_->order.size();
  counters.cached_bytes = state_->cached_bytes;
  return counters;
}

}  // namespace eagle::codegen
