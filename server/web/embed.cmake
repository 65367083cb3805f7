# Writes OUTPUT: assets.h with the text of the files of FOLDER.
set(parts "")
foreach(entry "/;page.html;text/html" "/page.css;page.css;text/css" "/page.js;page.js;text/javascript"
    "/icon.svg;icon.svg;image/svg+xml")
  list(GET entry 0 path)
  list(GET entry 1 file)
  list(GET entry 2 type)
  file(READ ${FOLDER}/${file} text)
  string(APPEND parts "    {\"${path}\", \"${type}; charset=utf-8\", R\"asset(${text})asset\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made by server/web/embed.cmake.
#include \"server/web/assets.h\"

namespace eagle::server {

std::span<const Asset> assets() {
  static constexpr Asset all[] = {
${parts}  };
  return all;
}

}  // namespace eagle::server
")
