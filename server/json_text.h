// JSON as text, a piece at a time.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace eagle::server {

// `text` as a JSON string, with its quotes. Bytes above ASCII are taken for UTF-8 where they are; each that
// belongs to no such character becomes U+FFFD, so that what comes out is valid whatever goes in.
std::string json_string(std::string_view text);

}  // namespace eagle::server
