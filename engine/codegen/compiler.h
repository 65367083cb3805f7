// Compiler: turns kernels into code through the helper process, and remembers what it made.
//
// LLVM lives in the helper (`eagle-compile`) alone. The helper is started at the first miss, kept warm,
// leaves after a minute of idleness, and is replaced when it dies or runs out of its limits; the caller
// then gets COMPILE_FAILED and everything else goes on. Code arrives as a sealed memfd and is mapped
// read-execute: never writable and executable at once.
//
// Thread-safe. Calls for the same kernel at the same time compile once; different kernels compile one
// after the other, small ones and large ones (large_kernel.h) each by themselves. One compile takes at most
// Options::timeout; a call may wait for those that came before, of which there is a bound (QUOTA).
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "engine/codegen/abi.h"
#include "engine/kernel/ir.h"

namespace eagle::codegen {

struct CodeHeader;  // code_file.h

// What code is compiled for: LLVM's names, e.g. cpu "znver4" with explicit features, or a level.
struct Target {
  std::string cpu;  // "x86-64", "x86-64-v3" (AVX2), "x86-64-v4" (AVX-512), or "" for this machine
  int copies =
      0;  // native vectors that run side by side (emit.h); 0: as many as each kernel's registers allow
  friend auto operator<=>(const Target&, const Target&) = default;
};
// This machine and every level that this CPU has: what code can be compiled for and run here.
std::vector<Target> supported_targets();
// EAGLED_CPU_TARGET where set, else this machine; EAGLED_INTERLEAVE ("1", "2", "4") where set, else as many
// copies as is best. BAD_VALUE names what is known.
StatusOr<Target> default_target();

// Executable code of one kernel for one target. Immutable; unmapped when the last owner goes.
class Code {
public:
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code();

  [[nodiscard]] KernelFunction function() const { return function_; }
  [[nodiscard]] const std::string& hash() const { return hash_; }  // the kernel's content hash
  [[nodiscard]] const std::string& cpu() const { return cpu_; }    // what it was compiled for
  [[nodiscard]] int lanes() const { return lanes_; }               // samples a block
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

private:
  friend class Compiler;
  Code() = default;
  void* image_ = nullptr;
  std::uint64_t bytes_ = 0;
  KernelFunction function_ = nullptr;
  std::string hash_;
  std::string cpu_;
  int lanes_ = 0;
};

class Compiler {
public:
  struct Options {
    std::string helper;  // path of eagle-compile; empty: see helper_process.h
    std::chrono::milliseconds timeout{60'000};
    std::uint64_t cache_bytes = 256u << 20;  // of code in memory; the least recently used goes first
    // Where code is kept between processes (disk_cache.h); empty: nowhere.
    std::string cache_directory;
    std::uint64_t disk_cache_bytes = 256u << 20;
  };
  struct Counters {
    std::uint64_t hits = 0;    // in memory
    std::uint64_t misses = 0;  // of memory; those that the disk had among them
    std::uint64_t disk_hits = 0;
    std::uint64_t cached = 0;  // kernels in the cache now
    std::uint64_t cached_bytes = 0;
  };
  struct Compiled {
    std::shared_ptr<const Code> code;
    bool hit = false;  // nothing was compiled: it came from memory or from disk
  };

  Compiler();
  explicit Compiler(Options options);
  ~Compiler();  // ends the helper
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  StatusOr<Compiled> compile(const kernel::Kernel& kernel, const Target& target);
  // The same, with the text of the emitted code instead: "llvm", "assembly". For people and tests.
  StatusOr<std::string> listing(const kernel::Kernel& kernel, const Target& target, std::string_view what);
  [[nodiscard]] Counters counters() const;
  // Ok, or why the cache directory that was asked for is not used.
  [[nodiscard]] Status disk_cache() const;

private:
  struct Key {
    std::string hash;  // the kernel's content hash
    Target target;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Made {
    std::shared_ptr<const Code> code;
    bool from_disk = false;
  };
  static StatusOr<std::shared_ptr<const Code>> map(const CodeHeader& header, const UniqueFd& image,
                                                   std::string hash);
  StatusOr<Made> make(const kernel::Kernel& kernel, const Key& key);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace eagle::codegen
