// Code kept between processes: found again, bounded, and never executed when somebody else wrote it.
#include "engine/codegen/disk_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "engine/codegen/compiler.h"
#include "engine/kernel/builder.h"

namespace eagle::codegen {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class DiskCacheTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "eagle-cache-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    directory_ = root_ / "cache";
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  DiskCache cache(std::uint64_t bytes = 1 << 20) const {
    StatusOr<DiskCache> opened = DiskCache::open(directory_, bytes);
    EXPECT_TRUE(opened.ok()) << opened.status().to_string();
    return *std::move(opened);
  }
  static void store(const DiskCache& cache, const std::string& key, const std::string& content) {
    const StatusOr<UniqueFd> image = sealed_image(content.data(), content.size());
    ASSERT_TRUE(image.ok());
    cache.store(key, {content.size(), 1, 8, "znver5"}, image->get());
  }
  static std::string content_of(const DiskCache::Entry& entry) {
    std::string bytes(entry.header.image_bytes, '\0');
    EXPECT_EQ(::pread(entry.image.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return bytes;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& file : fs::directory_iterator(directory_)) {
      if (file.path().extension() == ".code") found.push_back(file.path());
    }
    return found;
  }

  fs::path root_;
  fs::path directory_;
};

TEST_F(DiskCacheTest, FindsWhatAnotherProcessStored) {
  store(cache(), "key", "machine code");
  const auto entry = cache().find("key");  // opened anew, as another process would
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(content_of(*entry), "machine code");
  EXPECT_EQ(entry->header.entry_offset, 1u);
  EXPECT_EQ(entry->header.lanes, 8u);
  EXPECT_EQ(entry->header.cpu, "znver5");
  EXPECT_FALSE(cache().find("another key").has_value());
}

TEST_F(DiskCacheTest, IsItsOwnersAlone) {
  store(cache(), "key", "machine code");
  struct stat directory {
  }, key{};
  ASSERT_EQ(::stat(directory_.c_str(), &directory), 0);
  ASSERT_EQ(::stat((directory_ / "key").c_str(), &key), 0);
  EXPECT_EQ(directory.st_mode & 0777, 0700u);
  EXPECT_EQ(key.st_mode & 0777, 0600u);
}

TEST_F(DiskCacheTest, RefusesADirectoryThatOthersCanWrite) {
  fs::create_directory(directory_);
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  const auto opened = DiskCache::open(directory_, 1 << 20);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().reason(), Reason::permission_denied);
  EXPECT_THAT(opened.status().message(), HasSubstr(directory_.string()));
}

TEST_F(DiskCacheTest, RefusesALinkInPlaceOfTheDirectory) {
  fs::create_directory(root_ / "elsewhere");
  fs::create_directory_symlink(root_ / "elsewhere", directory_);
  EXPECT_FALSE(DiskCache::open(directory_, 1 << 20).ok());
}

// Any one byte changed, anything cut off or added: absent, and removed.
TEST_F(DiskCacheTest, NeverGivesOutBytesThatWereAltered) {
  const DiskCache kept = cache();
  store(kept, "key", "machine code");
  ASSERT_EQ(files().size(), 1u);
  const fs::path file = files()[0];
  std::stringstream original;
  original << std::ifstream(file).rdbuf();
  const std::string bytes = original.str();
  std::vector<std::string> altered = {"", bytes.substr(0, bytes.size() - 1), bytes + "x"};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    altered.push_back(bytes);
    altered.back()[i] = static_cast<char>(altered.back()[i] ^ 1);
  }
  for (const std::string& content : altered) {
    std::ofstream(file, std::ios::trunc) << content;
    EXPECT_FALSE(kept.find("key").has_value());
    EXPECT_FALSE(fs::exists(file));
  }
  std::ofstream(file) << bytes;
  EXPECT_TRUE(kept.find("key").has_value());
}

TEST_F(DiskCacheTest, DoesNotTakeOneKernelsFileForAnothers) {
  const DiskCache kept = cache();
  store(kept, "a", "code of a");
  const fs::path file_of_a = files()[0];
  store(kept, "b", "code of b");
  for (const fs::path& file : files()) {
    if (file != file_of_a) fs::copy_file(file, file_of_a, fs::copy_options::overwrite_existing);
  }
  EXPECT_FALSE(kept.find("a").has_value());
  EXPECT_TRUE(kept.find("b").has_value());
}

TEST_F(DiskCacheTest, StaysWithinItsBoundAndDropsTheLeastRecentlyUsed) {
  const DiskCache kept = cache(4'000);
  const std::string content(1'000, 'x');
  for (int i = 0; i < 3; ++i) {
    store(kept, std::to_string(i), content);
    // The clock of a file system may be too coarse to order them.
    for (const fs::path& file : files())
      fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(1));
  }
  ASSERT_TRUE(kept.find("0").has_value());  // used just now
  store(kept, "3", content);
  EXPECT_TRUE(kept.find("0").has_value());
  EXPECT_FALSE(kept.find("1").has_value());
  EXPECT_TRUE(kept.find("3").has_value());
  std::uint64_t total = 0;
  for (const fs::path& file : files()) total += fs::file_size(file);
  EXPECT_LE(total, 4'000u);
}

// The directory may be one that its user keeps other things in.
TEST_F(DiskCacheTest, NeitherCountsNorRemovesFilesThatAreNotItsOwn) {
  const DiskCache kept = cache(4'000);
  const std::string digits(64, 'a');
  const std::vector<std::string> others = {
      "thesis.txt",           "thesis.code",     digits,
      digits + ".code.bak",   digits + ".code~", "A" + digits.substr(1) + ".code",
      digits + ".code.12345", digits + "b.code"};
  for (const std::string& name : others) std::ofstream(directory_ / name) << std::string(3'000, 'x');
  fs::create_directories(directory_ / "empty");
  fs::create_directories(directory_ / (digits + ".code"));
  for (int i = 0; i < 6; ++i) store(kept, std::to_string(i), std::string(1'000, 'x'));
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(directory_ / name)) << name;
  EXPECT_TRUE(fs::exists(directory_ / "empty"));
  EXPECT_TRUE(fs::exists(directory_ / (digits + ".code")));
  EXPECT_TRUE(kept.find("5").has_value());
  EXPECT_TRUE(kept.find("4").has_value()) << "what is not its own counts";
  EXPECT_FALSE(kept.find("0").has_value());
}

TEST_F(DiskCacheTest, RemovesWhatAProcessLeftThatEndedWhileItStored) {
  const DiskCache kept = cache(4'000);
  const fs::path left = directory_ / (std::string(64, 'a') + ".code.Xy12z9");
  std::ofstream(left) << std::string(3'500, 'x');
  fs::last_write_time(left, fs::last_write_time(left) - std::chrono::hours(1));
  store(kept, "key", std::string(1'000, 'x'));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(kept.find("key").has_value());
}

TEST_F(DiskCacheTest, RefusesAKeyThatIsNotACachesAndLeavesIt) {
  fs::create_directory(directory_);
  ASSERT_EQ(::chmod(directory_.c_str(), 0700), 0);
  std::ofstream(directory_ / "key") << "of the house";
  const auto opened = DiskCache::open(directory_, 1 << 20);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.status().message(), HasSubstr("EAGLE_CACHE_DIR"));
  EXPECT_TRUE(fs::exists(directory_ / "key"));
}

// With the umask of users who share a group.
TEST_F(DiskCacheTest, IsItsOwnersAloneWithASlashAtTheEndOfItsName) {
  const mode_t before = ::umask(0002);
  const auto opened = DiskCache::open(directory_.string() + "//", 1 << 20);
  ::umask(before);
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  struct stat directory {};
  ASSERT_EQ(::stat(directory_.c_str(), &directory), 0);
  EXPECT_EQ(directory.st_mode & 0777, 0700u);
}

TEST_F(DiskCacheTest, IgnoresWhatIsLargerThanItsBound) {
  const DiskCache kept = cache(500);
  store(kept, "key", std::string(1'000, 'x'));
  EXPECT_TRUE(files().empty());
}

kernel::Kernel doubling() {
  kernel::KernelBuilder b("doubling");
  const auto x = b.scalar("x");
  b.output("y", b.add(x, x));
  return *b.finish();
}

double run(const Code& code) {
  double x = 21, y = 0;
  std::byte* planes[] = {reinterpret_cast<std::byte*>(&x), reinterpret_cast<std::byte*>(&y)};
  const std::int64_t numbers[2] = {};
  const std::uint64_t params[2] = {};
  KernelCall call;
  call.planes = planes;
  call.component_strides = numbers;
  call.lengths = numbers;
  call.params = params;
  call.end = 1;
  code.function()(&call);
  return y;
}

TEST_F(DiskCacheTest, SparesTheNextProcessTheCompiler) {
  Compiler::Options options;
  options.cache_directory = directory_;
  ASSERT_FALSE(Compiler(options).compile(doubling(), {})->hit);
  Compiler next(options);
  const auto again = next.compile(doubling(), {});
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->hit);
  EXPECT_EQ(next.counters().disk_hits, 1u);
  EXPECT_EQ(run(*again->code), 42);
}

// As on a disk that two machines share: each target's code is its own.
TEST_F(DiskCacheTest, CompilesAnewForAnotherTarget) {
  Compiler::Options options;
  options.cache_directory = directory_;
  ASSERT_TRUE(Compiler(options).compile(doubling(), {}).ok());
  Compiler next(options);
  const auto narrow = next.compile(doubling(), {"x86-64"});
  ASSERT_TRUE(narrow.ok()) << narrow.status().to_string();
  EXPECT_FALSE(narrow->hit);
  EXPECT_EQ(narrow->code->cpu(), "x86-64");
  EXPECT_EQ(run(*narrow->code), 42);
}

TEST_F(DiskCacheTest, ACompilerGoesOnWithoutADirectoryItCannotUse) {
  fs::create_directory(directory_);
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  Compiler::Options options;
  options.cache_directory = directory_;
  Compiler compiler(options);
  EXPECT_EQ(compiler.disk_cache().reason(), Reason::permission_denied);
  EXPECT_TRUE(compiler.compile(doubling(), {}).ok());
  EXPECT_TRUE(files().empty());
}

}  // namespace
}  // namespace eagle::codegen
