// The configuration file of eagled (docs/manual/configuration.md).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "server/options.h"

namespace eagle::server {

constexpr std::size_t most_config_bytes = 1u << 20;

// What the file holds; of one that is too large, so much that `read_config` refuses it. BAD_VALUE.
StatusOr<std::string> config_file_text(const std::string& path);

// Fills in what `given` does not know: the flags that the command line or the environment has set, as
// "--threads"; and notes in `origins` what came from the file. BAD_VALUE names file, line and key; an unknown
// key comes with the nearest one there is. `text` is the file's, `name` for messages.
Status read_config(std::string_view text, const std::string& name,
                   const std::function<bool(const std::string& flag)>& given, ProgramOptions& options);

}  // namespace eagle::server
