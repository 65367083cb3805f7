// Stands in for eagle-compile: passes every request on to the real one, and keeps the kernels that came by.
//
// EAGLE_RECORDED_HELPER is the real one, EAGLE_KERNEL_RECORDS the folder: one file a kernel, named by its
// hash.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "eagle/v1/compile.pb.h"
#include "engine/base/unique_fd.h"
#include "engine/codegen/channel.h"
#include "engine/kernel/verify.h"
#include "engine/kernel/wire.h"

namespace {

using namespace eagle;

constexpr int channel = 3;

void keep(const std::string& folder, const std::string& request_bytes) {
  v1::CompileRequest request;
  if (!request.ParseFromString(request_bytes)) return;
  kernel::Limits limits;
  limits.ops = 1'000'000;
  limits.scalar_ops = 10'000'000;
  const auto read = kernel::verify(request.kernel(), limits);
  // One that is not understood here is kept as well, for the test to fail.
  const std::string name = folder + "/" + (read.ok() ? kernel::content_hash(*read) : "not_understood");
  std::ofstream(name + "." + std::to_string(::getpid())) << request.kernel().SerializeAsString();
  std::rename((name + "." + std::to_string(::getpid())).c_str(), name.c_str());
}

}  // namespace

int main() {
  const char* real = std::getenv("EAGLE_RECORDED_HELPER");
  const char* folder = std::getenv("EAGLE_KERNEL_RECORDS");
  std::array<int, 2> pair{};
  if (real == nullptr || folder == nullptr ||
      ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
    return 2;
  const UniqueFd ours(pair[0]);
  if (::fork() == 0) {
    ::dup2(pair[1], channel);  // clears close-on-exec
    ::execl(real, real, nullptr);
    ::_exit(2);
  }
  ::close(pair[1]);
  while (true) {
    const auto request = codegen::receive_frame(channel, std::nullopt);
    if (!request.ok()) return 0;
    keep(folder, request->bytes);
    if (!codegen::send_frame(ours.get(), request->bytes, -1, std::nullopt).ok()) return 0;
    const auto reply = codegen::receive_frame(ours.get(), std::nullopt);
    if (!reply.ok()) return 0;
    if (!codegen::send_frame(channel, reply->bytes, reply->descriptor.get(), std::nullopt).ok()) return 0;
  }
}
