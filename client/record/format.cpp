#include "client/record/format.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/crc.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "eagle/v1/record.pb.h"
#include "engine/base/file_bytes.h"

namespace eagle::record {
namespace {

constexpr std::size_t head_bytes = 8;

std::uint32_t crc_of(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

void put(std::uint32_t value, char* into) {
  for (int i = 0; i < 4; ++i) into[i] = static_cast<char>(value >> (8 * i));
}
std::uint32_t get(const char* from) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(from[i]);
  return value;
}

std::string why() { return std::strerror(errno); }

Status unusable(const std::string& what) { return {Reason::bad_value, "recording: " + what}; }

// Nothing where the file ends before.
StatusOr<std::optional<std::string>> read_whole(int fd, std::uint64_t place, std::uint64_t bytes) {
  auto read = read_at(fd, place, bytes);
  if (read.ok()) return std::optional(*std::move(read));
  if (read.status().reason() == Reason::bad_message) return std::optional<std::string>();
  return read.status().within("recording: it cannot be read");
}

bool is_recording(int fd) {
  const auto begins = read_whole(fd, 0, magic.size());
  return begins.ok() && *begins == magic;
}

}  // namespace

std::string numbered(const std::string& path, int number) {
  return number == 1 ? path : path + "." + std::to_string(number);
}

StatusOr<Writer> Writer::create(const std::string& path, std::uint64_t most_bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0)
    return unusable("'" + path + "' cannot be made: " + why() +
                    "; name a file in a folder that you can write to");
  if (!S_ISREG(info.st_mode) || (info.st_size > 0 && !is_recording(fd.get())))
    return unusable("'" + path + "' is there and is no recording; name another file, or remove it first");
  if (::ftruncate(fd.get(), 0) != 0 || ::fchmod(fd.get(), 0600) != 0)
    return unusable("'" + path + "' cannot be replaced: " + why());
  return begin(std::move(fd), most_bytes);
}

StatusOr<Writer> Writer::create_beside(const std::string& path, std::uint64_t most_bytes) {
  for (int number = 1; number <= most_numbered; ++number) {
    const std::string name = numbered(path, number);
    UniqueFd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (fd.valid()) return begin(std::move(fd), most_bytes);
    if (errno != EEXIST)
      return unusable("'" + name + "' cannot be made: " + why() +
                      "; name a file in a folder that you can write to");
  }
  return unusable("'" + path + "' and all up to '" + numbered(path, most_numbered) +
                  "' are taken; remove some, or name another file");
}

StatusOr<Writer> Writer::begin(UniqueFd fd, std::uint64_t most_bytes) {
  Writer writer(std::move(fd), most_bytes);
  EAGLE_RETURN_IF_ERROR(writer.write(magic));
  return writer;
}

StatusOr<std::string> frame_of(const v1::RecordEntry& entry) {
  std::string frame(head_bytes, '\0');
  entry.AppendToString(&frame);
  const std::size_t size = frame.size() - head_bytes;
  if (size > most_frame_bytes) {
    return Status(Reason::quota, "recording: an entry of " + std::to_string(size) + " bytes, and at most " +
                                     std::to_string(most_frame_bytes) + " can be kept");
  }
  put(static_cast<std::uint32_t>(size), frame.data());
  put(crc_of(std::string_view(frame).substr(head_bytes)), frame.data() + 4);
  return frame;
}

Status Writer::append(const v1::RecordEntry& entry) {
  EAGLE_ASSIGN_OR_RETURN(const std::string frame, frame_of(entry));
  if (bytes_ + frame.size() > most_bytes_) {
    return {Reason::quota, "recording: its file has reached its bound of " + std::to_string(most_bytes_) +
                               " bytes (EAGLE_RECORD_BYTES)"};
  }
  return write(frame);
}

Status Writer::write(std::string_view bytes) {
  const Status written = write_at(fd_.get(), bytes, bytes_);
  if (written.ok()) {
    bytes_ += bytes.size();
    return {};
  }
  // Whoever reads it finds whole frames only: the next one goes over what this one left.
  const bool whole = ::ftruncate(fd_.get(), static_cast<off_t>(bytes_)) == 0;
  return written.within(whole ? "recording: its file cannot be written"
                              : "recording: its file can neither be written nor cut back to whole entries");
}

StatusOr<File> File::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return unusable("'" + path + "' cannot be read: " + why());
  auto file = of(std::move(fd));
  return file.ok() ? std::move(file) : file.status().within("'" + path + "'");
}

StatusOr<File> File::of(UniqueFd fd) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return unusable("it is no file");
  if (!is_recording(fd.get()))
    return unusable("it does not begin as one; `eaglectl record FILE PROGRAM` makes one");
  return File(std::move(fd), static_cast<std::uint64_t>(info.st_size));
}

StatusOr<bool> File::next(std::uint64_t& place, v1::RecordEntry& entry) const {
  if (place > bytes_ || bytes_ - place < head_bytes) return false;
  EAGLE_ASSIGN_OR_RETURN(const auto head, read_whole(fd_.get(), place, head_bytes));
  if (!head) return false;
  const std::uint32_t size = get(head->data());
  const auto bad = [&](const std::string& what) {
    return Status(Reason::bad_message, "recording: the entry at byte " + std::to_string(place) + " " + what);
  };
  if (size > most_frame_bytes)
    return bad("says that it has " + std::to_string(size) + " bytes, over the bound");
  if (bytes_ - place - head_bytes < size) return false;
  EAGLE_ASSIGN_OR_RETURN(const auto found, read_whole(fd_.get(), place + head_bytes, size));
  if (!found) return false;
  const std::string& content = *found;
  if (crc_of(content) != get(head->data() + 4)) return bad("is damaged: its checksum differs");
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(content.data()),
                                                static_cast<int>(content.size()));
  entry.Clear();
  if (!entry.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) return bad("is no entry");
  place += head_bytes + size;
  return true;
}

}  // namespace eagle::record
