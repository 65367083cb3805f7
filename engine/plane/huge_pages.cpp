#include "engine/plane/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string_view>

namespace eagle::plane {
namespace {

constexpr const char* size_file = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
constexpr const char* setting_file = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

// 0: this kernel has none.
std::uint64_t huge_page_bytes() {
  std::uint64_t bytes = 0;
  std::ifstream(size_file) >> bytes;
  return bytes;
}

// All that whole huge pages can hold, from an address that the system has aligned.
std::uint64_t whole_pages(std::uint64_t bytes, std::uint64_t page) {
  return page == 0 ? 0 : bytes / page * page;
}

// The one in brackets: "always within_size advise [never]".
std::string setting() {
  std::string text;
  std::getline(std::ifstream(setting_file), text);
  const std::size_t from = text.find('['), to = text.find(']');
  return from == std::string::npos || to == std::string::npos ? "" : text.substr(from + 1, to - from - 1);
}

// Of the mapping that begins there, what page tables map by huge pages.
std::uint64_t mapped_huge(const std::byte* data) {
  std::array<char, 32> begins{};
  std::snprintf(begins.data(), begins.size(), "%" PRIxPTR "-", reinterpret_cast<std::uintptr_t>(data));
  std::ifstream maps("/proc/self/smaps");
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    constexpr std::string_view of_shared = "ShmemPmdMapped:";
    if (!found) {
      found = line.starts_with(begins.data());
    } else if (line.starts_with(of_shared)) {
      std::uint64_t kib = 0;
      const std::size_t number = line.find_first_not_of(' ', of_shared.size());
      if (number != std::string::npos) std::from_chars(line.data() + number, line.data() + line.size(), kib);
      return kib << 10;
    }
  }
  return 0;
}

}  // namespace

void ask_for_huge_pages(std::byte* data, std::uint64_t bytes) {
  const std::uint64_t whole = whole_pages(bytes, huge_page_bytes());
  if (whole > 0) static_cast<void>(::madvise(data, whole, MADV_HUGEPAGE));
}

HugePages huge_pages_of(const std::byte* data, std::uint64_t bytes) {
  const std::uint64_t page = huge_page_bytes();
  if (page == 0) return {0, "huge pages: this kernel has none for shared memory"};
  const std::uint64_t whole = whole_pages(bytes, page);
  if (whole == 0)
    return {0, "huge pages: one has " + std::to_string(page) + " bytes, which is more than the plane"};
  HugePages had{std::min(mapped_huge(data), whole), {}};
  if (had.bytes == whole) return had;
  const std::string set = setting();
  had.why = "huge pages: the system gave them to " + std::to_string(had.bytes) + " of " +
            std::to_string(whole) + " bytes; ";
  had.why += set == "never" || set == "deny"
                 ? std::string(setting_file) + " is '" + set + "', and 'advise' gives them to who asks"
                 : "its free memory lies in smaller pieces";
  return had;
}

}  // namespace eagle::plane
