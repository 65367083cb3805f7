// eagle-compile: the one process that maps LLVM. It reads kernels from its socket (descriptor 3), verifies
// them again, compiles, and answers with sealed memfds. It has no other input, runs under limits, and
// leaves when its engine goes or after a minute without work.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "eagle/v1/compile.pb.h"
#include "engine/codegen/abi.h"
#include "engine/codegen/channel.h"
#include "engine/codegen/code_file.h"
#include "engine/codegen/device_abi.h"
#include "engine/codegen/emit.h"
#include "engine/codegen/helper/confine.h"
#include "engine/codegen/image.h"
#include "engine/codegen/large_kernel.h"
#include "engine/codegen/ptx_rules.h"
#include "engine/codegen/target_machine.h"
#include "engine/kernel/verify.h"

namespace {

using namespace eagle;

constexpr int channel = 3;
constexpr int idle_ms = 60'000;

StatusOr<std::unique_ptr<llvm::TargetMachine>> machine_of(const std::string& cpu,
                                                          const kernel::Kernel& kernel, bool large) {
  if (!cpu.starts_with("sm_")) return codegen::machine_for(cpu, large);
  const std::size_t bytes = 8 * codegen::device_parameter_words(kernel);
  if (bytes > codegen::most_parameter_bytes) {
    return Status(Reason::compile_failed,
                  "kernel '" + kernel.name + "' has " + std::to_string(kernel.arguments.size()) +
                      " arguments, which are " + std::to_string(bytes) +
                      " bytes of a GPU kernel's parameter; expected at most " +
                      std::to_string(codegen::most_parameter_bytes) + "; give it fewer arguments");
  }
  return codegen::device_machine_for(cpu, large, bytes);
}

Status compile(const v1::CompileRequest& request, v1::CompileReply& reply, UniqueFd& image_fd) {
  if (request.abi() != codegen::abi_version) {
    return Status(Reason::compile_failed,
                  "this eagle-compile makes code for interface " + std::to_string(codegen::abi_version) +
                      ", and the engine that asks has interface " + std::to_string(request.abi()) +
                      "; install both from one build, or name the right one with EAGLE_COMPILE_HELPER");
  }
  // The engine has applied its own limits; here the format's own ones keep the compiler safe.
  kernel::Limits limits;
  limits.ops = 1'000'000;
  limits.scalar_ops = 10'000'000;
  limits.arguments = 100'000;
  EAGLE_ASSIGN_OR_RETURN(const kernel::Kernel kernel, kernel::verify(request.kernel(), limits));
  const bool large = codegen::is_large(kernel);
  const bool device = request.cpu().starts_with("sm_");
  if (device && request.listing() == v1::LISTING_NONE)
    return Status(Reason::compile_failed, "no image for " + request.cpu() + ": its driver makes that of PTX");
  EAGLE_ASSIGN_OR_RETURN(const auto machine, machine_of(request.cpu(), kernel, large));
  const codegen::Shape shape = codegen::shape_for(
      kernel, *machine, std::min(static_cast<int>(request.copies()), codegen::most_copies));
  llvm::LLVMContext context;
  const auto module = codegen::emit(kernel, shape, context, *machine);
  std::string broken;
  llvm::raw_string_ostream broken_stream(broken);
  if (llvm::verifyModule(*module, &broken_stream))
    return Status(Reason::internal, "emitted code is broken: " + broken);
  codegen::optimise(*module, *machine, large);

  reply.set_lanes(static_cast<std::uint32_t>(shape.lanes()));
  reply.set_cpu(machine->getTargetCPU().str());
  if (request.listing() == v1::LISTING_LLVM) {
    llvm::raw_string_ostream stream(*reply.mutable_listing());
    module->print(stream, nullptr);
    return {};
  }
  const bool text = request.listing() == v1::LISTING_ASSEMBLY;
  EAGLE_ASSIGN_OR_RETURN(const auto object, codegen::assemble(*module, *machine,
                                                              text ? llvm::CodeGenFileType::AssemblyFile
                                                                   : llvm::CodeGenFileType::ObjectFile));
  if (text) {
    reply.set_listing(object->getBuffer().str());
    if (device) EAGLE_RETURN_IF_ERROR(codegen::check_ptx(reply.listing()));
    return {};
  }
  EAGLE_ASSIGN_OR_RETURN(const codegen::Image image, codegen::link_image(object->getMemBufferRef()));
  EAGLE_ASSIGN_OR_RETURN(image_fd, codegen::sealed_image(image.bytes.data(), image.bytes.size()));
  reply.set_image_bytes(image.bytes.size());
  reply.set_entry_offset(image.entry);
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
    llvm::errs()
        << "eagle-compile is started by eagled and by eagle.local(); it expects its socket as descriptor 3\n";
    return 2;
  }
  codegen::initialise_targets();
  if (const Status confined = codegen::confine(channel); !confined.ok()) {
    llvm::errs() << "eagle-compile: " << confined.message() << "\n";
    return 2;
  }
  while (work_comes()) {
    StatusOr<codegen::Frame> frame = codegen::receive_frame(channel, std::nullopt);
    if (!frame.ok()) return frame.status().reason() == Reason::connection_lost ? 0 : 1;
    codegen::renew_processor_time();
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
