#include "server/tar.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace eagle::server {
namespace {

constexpr std::size_t block_bytes = 512;

// A field of a header: octal digits, padded with zeros, and a NUL.
void put_octal(std::array<char, block_bytes>& header, std::size_t at, std::size_t size, std::uint64_t value) {
  for (std::size_t i = size - 1; i-- > 0; value /= 8) header[at + i] = static_cast<char>('0' + value % 8);
}

void put(std::array<char, block_bytes>& header, std::size_t at, std::string_view text) {
  std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

void Tar::add(std::string_view name, std::string_view content) {
  std::array<char, block_bytes> header{};
  put(header, 0, name.substr(0, 99));
  put_octal(header, 100, 8, 0644);
  put_octal(header, 108, 8, 0);  // owner
  put_octal(header, 116, 8, 0);
  put_octal(header, 124, 12, content.size());
  put_octal(header, 136, 12, static_cast<std::uint64_t>(std::max<std::int64_t>(time_s_, 0)));
  put(header, 148, "        ");  // the checksum is of this
  header[156] = '0';             // a regular file
  put(header, 257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put_octal(header, 148, 7, sum);
  bytes_.append(header.data(), header.size());
  bytes_ += content;
  bytes_.resize((bytes_.size() + block_bytes - 1) / block_bytes * block_bytes);
}

std::string Tar::finish() && {
  bytes_.resize(bytes_.size() + 2 * block_bytes);
  return std::move(bytes_);
}

}  // namespace eagle::server
