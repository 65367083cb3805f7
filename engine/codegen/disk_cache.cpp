#include "engine/codegen/disk_cache.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "engine/base/hex.h"

namespace eagle::codegen {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "eagle code 1\n";
constexpr std::string_view suffix = ".code";
constexpr std::size_t mac_bytes = 32;
constexpr std::uint64_t max_file_bytes = std::uint64_t{64} << 20;

std::string error_of(std::string_view what) { return std::string(what) + ": " + std::strerror(errno); }

// The whole file, or nothing. Never follows a link and never blocks on a pipe that somebody put there.
std::optional<std::string> read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat file {};
  if (!fd.valid() || ::fstat(fd.get(), &file) != 0 || !S_ISREG(file.st_mode) || file.st_uid != ::geteuid())
    return std::nullopt;
  if (file.st_size < 0 || static_cast<std::uint64_t>(file.st_size) > max_file_bytes) return std::nullopt;
  std::string bytes(static_cast<std::size_t>(file.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n = ::read(fd.get(), bytes.data() + have, bytes.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    have += static_cast<std::size_t>(n);
  }
  return bytes;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// A file that appears whole or not at all: written beside its place, then renamed (or linked, which does not
// replace one that another process put there first).
bool publish(const std::string& path, std::string_view bytes, bool replace) {
  std::string temporary = path + ".XXXXXX";
  const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return false;
  bool done = write_all(fd.get(), bytes);
  if (done && replace) done = ::rename(temporary.c_str(), path.c_str()) == 0;
  if (done && !replace) done = ::link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST;
  if (!done || !replace) ::unlink(temporary.c_str());
  return done;
}

// Whether a file of this name is the cache's: code, or code that a process did not come to put in its place.
bool is_own(std::string_view name) {
  constexpr std::size_t digits = 64, random = 6;  // of a SHA-256, and of mkostemp
  if (name.size() < digits || name.find_first_not_of("0123456789abcdef") != digits) return false;
  name.remove_prefix(digits);
  if (!name.starts_with(suffix)) return false;
  name.remove_prefix(suffix.size());
  return name.empty() || (name.size() == 1 + random && name.front() == '.');
}

void put(std::string& out, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out.push_back(static_cast<char>((value >> shift) & 0xff));
}

std::optional<std::uint64_t> take(std::string_view& in) {
  if (in.size() < 8) return std::nullopt;
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(in[static_cast<std::size_t>(i)])} << (8 * i);
  in.remove_prefix(8);
  return value;
}

Status check_directory(const std::string& directory) {
  struct stat file {};
  if (::lstat(directory.c_str(), &file) != 0)
    return {Reason::system, error_of("the code cache " + directory)};
  const bool ours = S_ISDIR(file.st_mode) && file.st_uid == ::geteuid() && (file.st_mode & 0022) == 0;
  if (ours) return {};
  return {Reason::permission_denied,
          "the code cache " + directory +
              " is not a directory that this user alone owns and can write; remove it, or name "
              "another one with EAGLE_CACHE_DIR"};
}

}  // namespace

std::string DiskCache::default_directory() {
  if (const char* named = std::getenv("EAGLE_CACHE_DIR"); named != nullptr) return named;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
    return std::string(cache) + "/eagle";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return std::string(home) + "/.cache/eagle";
  return {};
}

StatusOr<DiskCache> DiskCache::open(std::string directory, std::uint64_t max_bytes) {
  // With a slash at its end its parent would be itself, and be made as open as the umask allows.
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  std::error_code error;
  fs::create_directories(fs::path(directory).parent_path(), error);
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return Status(Reason::system, error_of("making the code cache " + directory));
  }
  EAGLE_RETURN_IF_ERROR(check_directory(directory));
  const std::string key_path = directory + "/key";
  Secret secret{};
  std::optional<std::string> stored = read_file(key_path);
  if (!stored) {
    if (RAND_bytes(secret.data(), static_cast<int>(secret.size())) != 1)
      return Status(Reason::system, "no random bytes");
    // Whoever comes first decides the key; mkostemp made the file 0600.
    publish(key_path, {reinterpret_cast<const char*>(secret.data()), secret.size()}, /*replace=*/false);
    stored = read_file(key_path);
  }
  if (!stored || stored->size() != secret.size()) {
    return Status(Reason::system, "the code cache " + directory +
                                      " has a file 'key' that is not a cache's key of " +
                                      std::to_string(secret.size()) +
                                      " bytes, readable for this user alone; name another directory with "
                                      "EAGLE_CACHE_DIR, or remove that file if it is a cache's");
  }
  std::memcpy(secret.data(), stored->data(), secret.size());
  return DiskCache(directory, max_bytes, secret);
}

std::string DiskCache::path_of(std::string_view key) const {
  std::array<unsigned char, 32> digest{};
  EVP_Digest(key.data(), key.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return directory_ + "/" + to_hex(digest) + std::string(suffix);
}

// Over the key too: a file moved to another key's name is not that key's code.
std::string DiskCache::seal(std::string_view key, std::string_view content) const {
  std::string message;
  put(message, key.size());
  message.append(key).append(content);
  std::string mac(mac_bytes, '\0');
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(),
       reinterpret_cast<unsigned char*>(mac.data()), &size);
  return mac;
}

std::optional<DiskCache::Entry> DiskCache::find(std::string_view key) const {
  const std::string path = path_of(key);
  const std::optional<std::string> bytes = read_file(path);
  if (!bytes) return std::nullopt;
  const auto broken = [&]() -> std::optional<Entry> {
    ::unlink(path.c_str());
    return std::nullopt;
  };
  if (bytes->size() < magic.size() + mac_bytes || !bytes->starts_with(magic)) return broken();
  std::string_view content = std::string_view(*bytes).substr(0, bytes->size() - mac_bytes);
  if (CRYPTO_memcmp(seal(key, content).data(), bytes->data() + content.size(), mac_bytes) != 0)
    return broken();

  content.remove_prefix(magic.size());
  Entry entry;
  const auto entry_offset = take(content), lanes = take(content), name_bytes = take(content);
  if (!entry_offset || !lanes || !name_bytes || *name_bytes > content.size()) return broken();
  entry.header.cpu = content.substr(0, *name_bytes);
  content.remove_prefix(*name_bytes);
  entry.header.entry_offset = *entry_offset;
  entry.header.lanes = static_cast<std::uint32_t>(*lanes);
  entry.header.image_bytes = content.size();
  StatusOr<UniqueFd> image = sealed_image(content.data(), content.size());
  if (!image.ok()) return std::nullopt;
  entry.image = *std::move(image);
  if (!check_image(entry.image.get(), entry.header).ok()) return broken();
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);  // used just now
  return entry;
}

void DiskCache::store(std::string_view key, const CodeHeader& header, int image) const {
  std::string bytes(magic);
  put(bytes, header.entry_offset);
  put(bytes, header.lanes);
  put(bytes, header.cpu.size());
  bytes.append(header.cpu);
  const std::size_t at = bytes.size();
  bytes.resize(at + header.image_bytes);
  if (bytes.size() + mac_bytes > std::min(max_file_bytes, max_bytes_)) return;
  if (::pread(image, bytes.data() + at, header.image_bytes, 0) != static_cast<ssize_t>(header.image_bytes))
    return;
  bytes += seal(key, bytes);
  make_room(bytes.size());
  publish(path_of(key), bytes, /*replace=*/true);
}

// Removes the least recently used of its own files until `bytes` more fit: the directory may be one that its
// user keeps other things in. Another process may do the same at the same time; a file that is gone already
// is no loss.
void DiskCache::make_room(std::uint64_t bytes) const {
  struct Kept {
    fs::file_time_type used;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<Kept> kept;
  std::uint64_t total = bytes;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(directory_, error)) {
    std::error_code gone;
    if (!is_own(file.path().filename().string()) || !fs::is_regular_file(file.symlink_status(gone))) continue;
    const std::uint64_t size = file.file_size(gone);
    if (gone) continue;
    const fs::file_time_type used = file.last_write_time(gone);
    if (gone) continue;
    total += size;
    kept.push_back({used, size, file.path()});
  }
  std::ranges::sort(kept, {}, &Kept::used);
  for (const Kept& file : kept) {
    if (total <= max_bytes_) return;
    fs::remove(file.path, error);
    total -= file.bytes;
  }
}

}  // namespace eagle::codegen
