// The configuration file of eagled (docs/manual/configuration.md).
#pragma once

#include <functional>
#include <string>

#include "engine/base/status.h"
#include "server/options.h"

namespace eagle::server {

// Fills in what `given` does not know: the flags that the command line or the environment has set, as
// "--threads"; and notes in `origins` what came from the file. BAD_VALUE names file, line and key; an unknown
// key comes with the nearest one there is.
Status read_config_file(const std::string& path, const std::function<bool(const std::string& flag)>& given,
                        ProgramOptions& options);
// The same of a file's text; `name` is for messages.
Status read_config(std::string_view text, const std::string& name,
                   const std::function<bool(const std::string& flag)>& given, ProgramOptions& options);

}  // namespace eagle::server
