// The file of a recording: eight bytes "EAGLEREC", then frames: a little-endian uint32 size, a uint32 CRC-32
// of the content, and one serialized v1::RecordEntry.
//
// Written by appending, a frame at a time, so that a process that dies leaves all that it had written. Read
// as bytes of anybody's: bounds first, then the CRC, then the message; what the entries say is checker.h's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"

namespace eagle::v1 {
class RecordEntry;
}

namespace eagle::record {

constexpr std::uint32_t format_version = 1;
constexpr std::string_view magic = "EAGLEREC";
constexpr std::uint32_t most_frame_bytes = 96u << 20;  // a description is at most 64 MiB (message_bytes)
constexpr std::uint64_t piece_bytes = 1u << 20;        // of RecordBytes

// The name of the `number`th recording that is made beside others: path, path.2, path.3, ...
std::string numbered(const std::string& path, int number);
constexpr int most_numbered = 10'000;

// The frame of an entry. QUOTA for one that is too large.
StatusOr<std::string> frame_of(const v1::RecordEntry& entry);

// A file that grows by frames. For one caller at a time.
class Writer {
public:
  // Makes the file, readable by its owner alone; one that is there is replaced if it is a recording.
  // BAD_VALUE. `most_bytes`: it grows no further.
  static StatusOr<Writer> create(const std::string& path, std::uint64_t most_bytes);
  // Likewise, and nothing is replaced: where `path` is taken, the first of path.2, path.3, ... that is not,
  // be it that other processes look for one at the same time.
  static StatusOr<Writer> create_beside(const std::string& path, std::uint64_t most_bytes);
  // Whole or not at all, as far as this process can. QUOTA for a file that would be too large, SYSTEM.
  Status append(const v1::RecordEntry& entry);
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

private:
  Writer(UniqueFd fd, std::uint64_t most_bytes) : fd_(std::move(fd)), most_bytes_(most_bytes) {}
  static StatusOr<Writer> begin(UniqueFd fd, std::uint64_t most_bytes);
  Status write(std::string_view bytes);
  UniqueFd fd_;
  std::uint64_t most_bytes_;
  std::uint64_t bytes_ = 0;
};

// Reads frames by their place. Thread-compatible.
class File {
public:
  static StatusOr<File> open(const std::string& path);  // BAD_VALUE: it cannot be read, or is no recording
  static StatusOr<File> of(UniqueFd fd);                // likewise

  // The entry of the frame at `place` (the first is at `first_place`), which is moved behind it. False at the
  // end of the file, also where that is in the middle of a frame (`cut_short` is then true). BAD_MESSAGE.
  StatusOr<bool> next(std::uint64_t& place, v1::RecordEntry& entry) const;
  [[nodiscard]] bool cut_short(std::uint64_t place) const { return place < bytes_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  static constexpr std::uint64_t first_place = magic.size();

private:
  File(UniqueFd fd, std::uint64_t bytes) : fd_(std::move(fd)), bytes_(bytes) {}
  UniqueFd fd_;
  std::uint64_t bytes_ = 0;
};

}  // namespace eagle::record
