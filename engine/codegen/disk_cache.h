// DiskCache: compiled code kept between processes, one file a kernel and target.
//
// The directory belongs to one user: it is made with mode 0700, and one that somebody else owns or can write
// is not used. Every file carries a MAC under a key that only that user can read, so that bytes which this
// user's programs did not write are never executed; a file that is cut short, altered or of another format
// counts as absent and is removed. Files appear by rename, so that readers and writers in other processes
// never see half of one. The least recently used go when the bound is reached.
//
// Thread-safe and safe to share between processes. It never fails a compile: what does not work is a miss.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "engine/codegen/code_file.h"

namespace eagle::codegen {

class DiskCache {
public:
  struct Entry {
    CodeHeader header;
    UniqueFd image;
  };

  // `max_bytes` bounds the sum of the cache's own files; others in the directory neither count nor go.
  // PERMISSION_DENIED or SYSTEM when the directory cannot be used; the message says why and what to do.
  static StatusOr<DiskCache> open(std::string directory, std::uint64_t max_bytes);

  // `key` names everything that the code depends on: content hash, target, compiler. Any bytes.
  [[nodiscard]] std::optional<Entry> find(std::string_view key) const;
  void store(std::string_view key, const CodeHeader& header, int image) const;

  // $EAGLE_CACHE_DIR, else $XDG_CACHE_HOME/eagle, else ~/.cache/eagle; empty when there is none of them, or
  // where EAGLE_CACHE_DIR is set and empty (no cache).
  static std::string default_directory();

private:
  using Secret = std::array<unsigned char, 32>;
  DiskCache(std::string directory, std::uint64_t max_bytes, const Secret& secret)
      : directory_(std::move(directory)), max_bytes_(max_bytes), secret_(secret) {}

  [[nodiscard]] std::string path_of(std::string_view key) const;
  [[nodiscard]] std::string seal(std::string_view key, std::string_view content) const;  // the MAC
  void make_room(std::uint64_t bytes) const;

  std::string directory_;
  std::uint64_t max_bytes_;
  Secret secret_;
};

}  // namespace eagle::codegen
