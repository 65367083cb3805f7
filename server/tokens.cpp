#include "server/tokens.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <sstream>
#include <utility>

#include "engine/base/unique_fd.h"

namespace eagle::server {
namespace {

constexpr std::size_t most_bytes = 4u << 20;  // of the file
constexpr std::string_view scheme = "sha256:";

StatusOr<std::string> read_file(const std::string& path) {
  const auto failed = [&](const char* call) {
    return Status(Reason::system, std::string(call) + " of '" + path + "': " + std::strerror(errno));
  };
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return failed("open");
  struct stat file {};
  if (::fstat(fd.get(), &file) != 0) return failed("stat");
  if (!S_ISREG(file.st_mode)) return Status(Reason::bad_value, "'" + path + "' is not a regular file");
  if ((file.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Status(Reason::permission_denied, "'" + path +
                                                 "' can be written by others than its owner, who could add "
                                                 "tokens of their own; chmod go-w it");
  }
  if (static_cast<std::uint64_t>(file.st_size) > most_bytes) {
    return Status(Reason::bad_value, "'" + path + "' has " + std::to_string(file.st_size) +
                                         " bytes; expected at most " + std::to_string(most_bytes));
  }
  std::string text(static_cast<std::size_t>(file.st_size), '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t count = ::read(fd.get(), text.data() + got, text.size() - got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("read");
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  text.resize(got);
  return text;
}

// What may be the subject of a token: it shows in logs and lists.
bool is_subject(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == '@' || c == '/';
  });
}

Digest digest_of_text(std::string_view text) {
  return digest_of({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

}  // namespace

StatusOr<std::shared_ptr<Tokens>> Tokens::load(const std::string& path) {
  std::shared_ptr<Tokens> tokens(new Tokens());
  EAGLE_RETURN_IF_ERROR(tokens->read(path));
  return tokens;
}

void Tokens::replace_by(const Tokens& other) {
  const std::scoped_lock lock(mutex_, other.mutex_);
  entries_ = other.entries_;
}

Status Tokens::read(const std::string& path) {
  EAGLE_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  std::vector<Entry> entries;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    const std::size_t space = line.find(' ');
    const std::string_view hashed = std::string_view(line).substr(0, space);
    const std::string_view subject =
        space == std::string::npos ? std::string_view() : std::string_view(line).substr(space + 1);
    const auto digest =
        hashed.starts_with(scheme) ? secret_from_hex(hashed.substr(scheme.size())) : std::nullopt;
    // The line itself is not shown: it may be a token that somebody pasted here.
    if (!digest || !is_subject(subject)) {
      return {Reason::bad_value,
              "'" + path + "' line " + std::to_string(number) +
                  ": expected 'sha256:' with 64 hexadecimal digits, a space and a subject of "
                  "letters, digits and . - _ @ /; `eagled --new-token SUBJECT` makes such a line"};
    }
    entries.push_back({*digest, std::string(subject)});
  }
  const std::lock_guard lock(mutex_);
  entries_ = std::move(entries);
  return {};
}

std::optional<std::string> Tokens::subject_of(std::string_view token) const {
  if (token.size() < fewest_bytes) return {};
  const Digest digest = digest_of_text(token);
  const Entry* found = nullptr;
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {  // all of them, each whole
    if (::CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) found = &entry;
  }
  return found == nullptr ? std::nullopt : std::optional(found->subject);
}

std::size_t Tokens::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

StatusOr<Tokens::Made> Tokens::make(std::string_view subject) {
  if (!is_subject(subject)) {
    return Status(Reason::bad_value,
                  "a token's subject: expected up to 128 letters, digits and . - _ @ /, found '" +
                      std::string(subject.substr(0, 128)) + "'");
  }
  Secret secret{};
  EAGLE_RETURN_IF_ERROR(fill_random(secret));
  Made made;
  made.token = to_hex(secret);
  made.line = std::string(scheme) + to_hex(digest_of_text(made.token)) + " " + std::string(subject);
  return made;
}

}  // namespace eagle::server
