// eagle-compile: the one process that maps LLVM. It reads kernels from its socket (descriptor 3), verifies
// them again, compiles, and answers with sealed memfds. It has no other input, runs under limits, and
// leaves when its engine goes or after a minute without work.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "eagle/v1/compile.pb.h"
#include "engine/codegen/channel.h"
#include "engine/codegen/emit.h"
#include "engine/codegen/image.h"
#include "engine/codegen/target_machine.h"
#include "engine/kernel/verify.h"

namespace {

using namespace eagle;

constexpr int channel = 3;
constexpr int idle_ms = 60'000;
constexpr rlim_t address_space = rlim_t{8} << 30;
constexpr std::size_t large_kernel_values = 2'000;

void limit(int resource, rlim_t value) {
  rlimit wanted{value, value};
  rlimit current{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &current) == 0 && current.rlim_max < value) {
    wanted = {current.rlim_max, current.rlim_max};
  }
  setrlimit(static_cast<__rlimit_resource>(resource), &wanted);
}

void confine() {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, rlim_t{1} << 30);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow memory is larger than any limit
  limit(RLIMIT_AS, address_space);
#endif
  // The process that started us may have had descriptors without close-on-exec; none is ours.
  close_range(channel + 1, ~0U, 0);
}

std::string error_of(const char* call) { return std::string(call) + ": " + std::strerror(errno); }

// The image as a memfd that nobody can change any more.
StatusOr<UniqueFd> seal(const codegen::Image& image) {
  UniqueFd fd(memfd_create("eagle-code", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return Status(Reason::system, error_of("memfd_create"));
  fchmod(fd.get(), 0500);
  std::size_t written = 0;
  while (written < image.bytes.size()) {
    const ssize_t n = write(fd.get(), image.bytes.data() + written, image.bytes.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Status(Reason::out_of_memory, error_of("writing the image"));
    written += static_cast<std::size_t>(n);
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Status(Reason::system, error_of("sealing the image"));
  }
  return fd;
}

Status compile(const v1::CompileRequest& request, v1::CompileReply& reply, UniqueFd& image_fd) {
  const auto started = std::chrono::steady_clock::now();
  // The engine has applied its own limits; here the format's own ones keep the compiler safe.
  kernel::Limits limits;
  limits.ops = 1'000'000;
  limits.arguments = 100'000;
  EAGLE_ASSIGN_OR_RETURN(const kernel::Kernel kernel, kernel::verify(request.kernel(), limits));
  const bool large = kernel.value_types.size() > large_kernel_values;
  EAGLE_ASSIGN_OR_RETURN(const auto machine, codegen::machine_for(request.cpu(), large));
  const codegen::Shape shape = codegen::shape_for(kernel, *machine);
  llvm::LLVMContext context;
  const auto module = codegen::emit(kernel, shape, context, *machine);
  std::string broken;
  llvm::raw_string_ostream broken_stream(broken);
  if (llvm::verifyModule(*module, &broken_stream)) return Status(Reason::internal, "emitted code is broken: " + broken);
  codegen::optimise(*module, *machine, large);

  reply.set_lanes(static_cast<std::uint32_t>(shape.lanes()));
  reply.set_cpu(machine->getTargetCPU().str());
  if (request.listing() == v1::LISTING_LLVM) {
    llvm::raw_string_ostream stream(*reply.mutable_listing());
    module->print(stream, nullptr);
    return {};
  }
  const bool text = request.listing() == v1::LISTING_ASSEMBLY;
  EAGLE_ASSIGN_OR_RETURN(const auto object,
                         codegen::assemble(*module, *machine,
                                           text ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile));
  if (text) {
    reply.set_listing(object->getBuffer().str());
    return {};
  }
  EAGLE_ASSIGN_OR_RETURN(const codegen::Image image, codegen::link_image(object->getMemBufferRef()));
  EAGLE_ASSIGN_OR_RETURN(image_fd, seal(image));
  reply.set_image_bytes(image.bytes.size());
  reply.set_entry_offset(image.entry);
  reply.set_compile_s(std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  return {};
}

// Waits for work; false when it is time to leave.
bool work_comes() {
  pollfd entry{channel, POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&entry, 1, idle_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

int main() {
  if (fcntl(channel, F_GETFD) < 0) {
    llvm::errs() << "eagle-compile is started by eagled and by eagle.local(); it expects its socket as descriptor 3\n";
    return 2;
  }
  confine();
  while (work_comes()) {
    StatusOr<codegen::Frame> frame = codegen::receive_frame(channel, std::nullopt);
    if (!frame.ok()) return frame.status().reason() == Reason::connection_lost ? 0 : 1;
    v1::CompileRequest request;
    v1::CompileReply reply;
    UniqueFd image;
    if (!request.ParseFromString(frame->bytes)) {
      reply.set_error("not a compile request");
    } else if (const Status status = compile(request, reply, image); !status.ok()) {
      reply.set_error(status.message());
    }
    if (!codegen::send_frame(channel, reply.SerializeAsString(), image.get(), std::nullopt).ok()) return 0;
  }
  return 0;
}
