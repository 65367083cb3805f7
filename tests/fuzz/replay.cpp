// Runs a fuzz target over files: its corpus, or one input that broke it.
//
//   TARGET FILE_OR_DIRECTORY...     every file once; prints how many there were
//   TARGET --seeds DIRECTORY        writes the target's first inputs there
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

int write_seeds(const fs::path& directory) {
  fs::create_directories(directory);
  int number = 0;
  for (const std::string& seed : eagle::fuzz::seeds()) {
    char name[32];
    std::snprintf(name, sizeof name, "seed-%03d", number++);
    std::ofstream(directory / name, std::ios::binary) << seed;
  }
  std::printf("%d inputs\n", number);
  return number > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--seeds") == 0) return write_seeds(argv[2]);
  std::size_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const fs::path& file : files_of(argv[i])) {
      std::ifstream stream(file, std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
      if (!stream) {
        std::fprintf(stderr, "cannot read %s\n", file.c_str());
        return 1;
      }
      // The name comes first: an input that ends the process is the last one named.
      if (argc == 2) std::printf("%s\n", file.c_str());
      std::fflush(stdout);
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++inputs;
    }
  }
  std::printf("%zu inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}
