#include "engine/codegen/compiler.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "eagle/v1/compile.pb.h"
#include "engine/codegen/abi.h"
#include "engine/codegen/code_file.h"
#include "engine/codegen/disk_cache.h"
#include "engine/codegen/helper_process.h"
#include "engine/codegen/large_kernel.h"
#include "engine/kernel/wire.h"

namespace eagle::codegen {
namespace {

// Callers that may wait for a helper; the others hear that it is busy.
constexpr int most_quick_waiting = 256;
constexpr int most_slow_waiting = 2;

// What compiled code depends on beside the kernel when it is compiled "for this machine": two machines that
// share a disk, or one that was moved, must not load each other's.
std::string describe_cpu() {
  std::ifstream cpus("/proc/cpuinfo");
  std::string description, line;
  while (std::getline(cpus, line) && !line.empty()) {  // the first processor
    for (const char* field : {"vendor_id", "cpu family", "model", "stepping", "flags", "CPU implementer",
                              "CPU part", "Features"}) {
      if (line.starts_with(field)) description += line + "\n";
    }
  }
  return description;
}

void describe(v1::CompileRequest& request, const kernel::Kernel& kernel, const Target& target) {
  request.set_abi(abi_version);
  kernel::to_message(kernel, *request.mutable_kernel());
  request.set_cpu(target.cpu);
  request.set_copies(static_cast<std::uint32_t>(target.copies));
}

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

std::vector<Target> supported_targets() {
  std::vector<Target> targets = {Target{}};
  for (const Level& level : levels()) {
    if (level.supported) targets.push_back({std::string(level.name)});
  }
  return targets;
}

namespace {

StatusOr<int> default_copies() {
  const char* said = std::getenv("EAGLED_INTERLEAVE");
  const std::string_view value = said == nullptr ? "" : said;
  if (value.empty()) return 0;
  if (value == "1" || value == "2" || value == "4") return value[0] - '0';
  return Status(Reason::bad_value, "EAGLED_INTERLEAVE=" + std::string(value) +
                                       " is none of 1, 2 and 4, the native vectors that a kernel's loops "
                                       "take at a time; unset it for what is best for each");
}

}  // namespace

StatusOr<Target> default_target() {
  EAGLE_ASSIGN_OR_RETURN(const int copies, default_copies());
  const char* forced = std::getenv("EAGLED_CPU_TARGET");
  if (forced == nullptr || *forced == '\0') return Target{"", copies};
  for (const Level& level : levels()) {
    if (level.name != forced) continue;
    if (level.supported) return Target{forced, copies};
    return Status(Reason::bad_value,
                  "EAGLED_CPU_TARGET=" + std::string(forced) +
                      " needs instructions that this CPU does not have; unset it, or name a "
                      "narrower one (x86-64, x86-64-v2, x86-64-v3, x86-64-v4)");
  }
  return Status(Reason::bad_value,
                "EAGLED_CPU_TARGET=" + std::string(forced) +
                    " is not a target; known: x86-64, x86-64-v2, x86-64-v3 (AVX2), x86-64-v4 "
                    "(AVX-512), or unset for this machine");
}

Code::~Code() {
  if (image_ != nullptr) ::munmap(image_, bytes_);
}

struct Compiler::State {
  struct Entry {
    std::shared_ptr<const Code> code;   // null while it is being compiled
    std::list<Key>::iterator position;  // in `order`; valid with code
  };

  explicit State(Options chosen)
      : options(std::move(chosen)),
        quick(options.helper, options.timeout, most_quick_waiting),
        slow(options.helper, options.timeout, most_slow_waiting) {
    if (options.cache_directory.empty()) return;
    StatusOr<DiskCache> opened = DiskCache::open(options.cache_directory, options.disk_cache_bytes);
    if (opened.ok()) {
      disk = *std::move(opened);
    } else {
      disk_problem = opened.status();
    }
  }

  // Everything that the code of `key` depends on; empty when the helper cannot be found.
  [[nodiscard]] std::string disk_key(const Key& key) const {
    static const std::string this_cpu = describe_cpu();
    const std::string compiler = quick.identity();
    if (compiler.empty()) return {};
    const Target& target = key.target;
    return "abi " + std::to_string(abi_version) + "\n" + key.hash + "\n" +
           (target.cpu.empty() ? this_cpu : target.cpu) + "\ncopies " + std::to_string(target.copies) + "\n" +
           compiler;
  }

  HelperProcess& helper_for(const kernel::Kernel& kernel) { return is_large(kernel) ? slow : quick; }

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

  // The entry of a key that is being compiled. However that ends, those who wait for it hear: they find the
  // code, or nothing and try for themselves.
  struct Claim {
    Claim(State& owner, const Key& claimed) : state(owner), key(claimed) {}
    ~Claim() {
      const std::lock_guard lock(state.mutex);
      state.entries.erase(key);
      if (code != nullptr) state.remember(key, std::move(code));
      state.changed.notify_all();
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

    State& state;
    const Key& key;
    std::shared_ptr<const Code> code;
  };

  const Options options;
  // Two helpers, so that a kernel that takes a minute delays no other but its like.
  HelperProcess quick;
  HelperProcess slow;
  std::optional<DiskCache> disk;
  Status disk_problem;  // why there is none although one was asked for

  std::mutex mutex;                 // guards all below
  std::condition_variable changed;  // an entry was filled or dropped
  std::map<Key, Entry> entries;
  std::list<Key> order;  // most recently used first
  std::uint64_t cached_bytes = 0;
  Counters counters;

  std::atomic<std::uint64_t> disk_hits = 0;
};

Compiler::Compiler() : Compiler(Options()) {}
Compiler::Compiler(Options options) : state_(std::make_unique<State>(std::move(options))) {}
Compiler::~Compiler() = default;

StatusOr<Compiler::Compiled> Compiler::compile(const kernel::Kernel& kernel, const Target& target) {
  const Key key{kernel::content_hash(kernel), target};
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
  State::Claim claim(*state_, key);
  EAGLE_ASSIGN_OR_RETURN(const Made made, make(kernel, key));
  claim.code = made.code;
  if (made.from_disk) ++state_->disk_hits;
  return Compiled{made.code, made.from_disk};
}

StatusOr<std::shared_ptr<const Code>> Compiler::map(const CodeHeader& header, const UniqueFd& image,
                                                    std::string hash) {
  EAGLE_RETURN_IF_ERROR(check_image(image.get(), header));
  void* mapped = ::mmap(nullptr, header.image_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, image.get(), 0);
  if (mapped == MAP_FAILED) return Status(Reason::out_of_memory, "cannot map compiled code");
  std::shared_ptr<Code> code(new Code());
  code->image_ = mapped;
  code->bytes_ = header.image_bytes;
  code->function_ = reinterpret_cast<KernelFunction>(static_cast<std::byte*>(mapped) + header.entry_offset);
  code->hash_ = std::move(hash);
  code->cpu_ = header.cpu;
  code->lanes_ = static_cast<int>(header.lanes);
  return std::shared_ptr<const Code>(std::move(code));
}

// From the disk, else from the helper, and then to the disk.
StatusOr<Compiler::Made> Compiler::make(const kernel::Kernel& kernel, const Key& key) {
  const std::string disk_key = state_->disk ? state_->disk_key(key) : std::string();
  if (!disk_key.empty()) {
    if (const std::optional<DiskCache::Entry> found = state_->disk->find(disk_key)) {
      StatusOr<std::shared_ptr<const Code>> code = map(found->header, found->image, key.hash);
      if (code.ok()) return Made{*std::move(code), true};
    }
  }
  v1::CompileRequest request;
  describe(request, kernel, key.target);
  v1::CompileReply reply;
  EAGLE_ASSIGN_OR_RETURN(const UniqueFd image, state_->helper_for(kernel).call(request, reply));
  const CodeHeader header{reply.image_bytes(), reply.entry_offset(), reply.lanes(), reply.cpu()};
  EAGLE_ASSIGN_OR_RETURN(std::shared_ptr<const Code> code, map(header, image, key.hash));
  if (!disk_key.empty()) state_->disk->store(disk_key, header, image.get());
  return Made{std::move(code), false};
}

StatusOr<std::string> Compiler::listing(const kernel::Kernel& kernel, const Target& target,
                                        std::string_view what) {
  v1::CompileRequest request;
  describe(request, kernel, target);
  if (what != "llvm" && what != "assembly") {
    return Status(Reason::bad_value, "no listing '" + std::string(what) + "'; there are llvm and assembly");
  }
  request.set_listing(what == "llvm" ? v1::LISTING_LLVM : v1::LISTING_ASSEMBLY);
  v1::CompileReply reply;
  EAGLE_RETURN_IF_ERROR(state_->helper_for(kernel).call(request, reply).status());
  return reply.listing();
}

Status Compiler::disk_cache() const { return state_->disk_problem; }

Compiler::Counters Compiler::counters() const {
  const std::lock_guard lock(state_->mutex);
  Counters counters = state_->counters;
  counters.disk_hits = state_->disk_hits;
  counters.cached = state_->order.size();
  counters.cached_bytes = state_->cached_bytes;
  return counters;
}

}  // namespace eagle::codegen
