#include "tests/gpu/ptxas.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace eagle::gpu_tests {
namespace {

std::string program() {
  const char* named = std::getenv("EAGLE_PTXAS");
  return named != nullptr && *named != '\0' ? named : "ptxas";
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

Status assemble(std::string_view ptx, std::string_view arch) {
  std::string folder = (std::filesystem::temp_directory_path() / "eagle_ptxas_XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return {Reason::system, "cannot make " + folder};
  const std::string source = folder + "/kernel.ptx", said = folder + "/said";
  std::ofstream(source) << ptx;
  const std::string command = "'" + program() + "' --gpu-name " + std::string(arch) + " --output-file '" +
                              folder + "/kernel.cubin' '" + source + "' >'" + said + "' 2>&1";
  const int result = std::system(command.c_str());
  const std::string words = text_of(said);
  std::filesystem::remove_all(folder);
  if (result == 0) return {};
  return {Reason::system, "ptxas (" + program() + ") refused PTX for " + std::string(arch) + ":\n" + words +
                              "\n" + std::string(ptx)};
}

}  // namespace eagle::gpu_tests
