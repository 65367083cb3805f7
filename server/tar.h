// Tar: an archive (POSIX ustar) of small files, written piece by piece.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace eagle::server {

class Tar {
public:
  // `time_s`: of all files, in seconds since 1970.
  explicit Tar(std::int64_t time_s) : time_s_(time_s) {}

  // `name`: a relative path of at most 99 bytes.
  void add(std::string_view name, std::string_view content);
  // The archive; nothing is added afterwards.
  std::string finish() &&;

private:
  const std::int64_t time_s_;
  std::string bytes_;
};

}  // namespace eagle::server
