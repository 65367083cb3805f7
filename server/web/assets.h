// Assets: the files of the dashboard, as they stand beside this one; CMake puts them into the program.
#pragma once

#include <span>
#include <string_view>

namespace eagle::server {

struct Asset {
  std::string_view path;  // "/", "/page.js"
  std::string_view content_type;
  std::string_view text;
};
std::span<const Asset> assets();

}  // namespace eagle::server
