// Memory of a GPU between processes, on the fake driver: what one makes another opens, by descriptor and by
// 64 bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/descriptors.h"
#include "engine/codegen/compiler.h"
#include "engine/plane/packed.h"
#include "engine/plane/testing.h"
#include "engine/run/cuda/device_sharing.h"
#include "engine/run/cuda/device_transfer.h"
#include "engine/run/cuda/devices.h"
#include "engine/run/cuda/foreign_memory.h"
#include "engine/run/cuda/pretend.h"

namespace eagle::run::cuda {
namespace {

using ::testing::HasSubstr;

using testing::pretend;

std::shared_ptr<const Device> gpu(int ordinal = 0) {
  const auto driver = Driver::open();
  EXPECT_TRUE(driver.ok()) << driver.status().to_string();
  auto device = Device::open(*driver, ordinal);
  EXPECT_TRUE(device.ok()) << device.status().to_string();
  return *device;
}

std::vector<std::byte> bytes_of(const DeviceMemory& memory) {
  std::vector<std::byte> bytes(memory.bytes());
  const Status read = memory.read(bytes);
  EXPECT_TRUE(read.ok()) << read.to_string();
  return bytes;
}

// Runs `child` in a process that has used no GPU yet; its words on the way there and back are bytes of
// `socket`.
class Other {
public:
  explicit Other(const std::function<int(int socket)>& child) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    process_ = ::fork();
    if (process_ == 0) {
      ::close(ends[0]);
      ::alarm(60);
      ::_exit(child(ends[1]));
    }
    ::close(ends[1]);
    socket_ = ends[0];
  }
  ~Other() { ::close(socket_); }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  [[nodiscard]] int socket() const { return socket_; }
  int status() {
    int status = 0;
    EXPECT_EQ(::waitpid(process_, &status, 0), process_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

private:
  pid_t process_ = 0;
  int socket_ = -1;
};

struct Message {
  char uuid[48] = {};
  char ipc[64] = {};
  std::uint64_t allocation = 0, offset = 0, bytes = 0;
};

void send_handle(int socket, const DeviceHandle& handle) {
  Message message;
  handle.uuid.copy(message.uuid, sizeof message.uuid - 1);
  handle.ipc.copy(message.ipc, sizeof message.ipc);
  message.allocation = handle.allocation;
  message.offset = handle.offset;
  message.bytes = handle.bytes;
  const int descriptor = handle.descriptor.get();
  const std::string_view text(reinterpret_cast<const char*>(&message), sizeof message);
  EXPECT_EQ(send_with_descriptors(socket, text,
                                  {&descriptor, static_cast<std::size_t>(descriptor >= 0 ? 1 : 0)}, 0),
            static_cast<ssize_t>(sizeof message));
}

DeviceHandle receive_handle(int socket) {
  Message message;
  iovec data{&message, sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  DeviceHandle handle;
  if (::recvmsg(socket, &header, MSG_WAITALL | MSG_CMSG_CLOEXEC) != static_cast<ssize_t>(sizeof message))
    return handle;
  if (const cmsghdr* const passed = CMSG_FIRSTHDR(&header)) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(passed), sizeof descriptor);
    handle.descriptor = UniqueFd(descriptor);
  } else {
    handle.ipc.assign(message.ipc, sizeof message.ipc);
  }
  handle.uuid = message.uuid;
  handle.allocation = message.allocation;
  handle.offset = message.offset;
  handle.bytes = message.bytes;
  return handle;
}

char word_from(int socket) {
  char word = 0;
  return ::read(socket, &word, 1) == 1 ? word : '\0';
}
void say(int socket, char word) { EXPECT_EQ(::write(socket, &word, 1), 1); }

// A process that opens what it is sent, adds one to each byte, and says so; then it waits for another word
// and says what the first byte is by then.
int adds_one(int socket) {
  const auto memory = DeviceMemory::open(gpu(), receive_handle(socket));
  if (!memory.ok()) return 1;
  std::vector<std::byte> bytes = bytes_of(*memory);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(static_cast<int>(byte) + 1);
  if (!memory->write(bytes).ok()) return 2;
  say(socket, 'd');
  word_from(socket);
  say(socket, static_cast<char>(bytes_of(*memory)[0]));
  return 0;
}

class GpuSharing : public ::testing::TestWithParam<bool> {
protected:
  void SetUp() override { pretend(GetParam() ? "descriptors=1" : "descriptors=0"); }
};

TEST_P(GpuSharing, WhatOneProcessMakesAnotherOpens) {
  Other other(adds_one);  // before this process has a GPU: a driver does not survive a fork
  auto memory = DeviceMemory::create_shared(gpu(), 1000);
  ASSERT_TRUE(memory.ok()) << memory.status().to_string();
  EXPECT_EQ(transport_of(memory->sharing()), GetParam() ? "cuda_vmm_fd" : "cuda_ipc");
  EXPECT_EQ(memory->taken_bytes(), 2u << 20);
  ASSERT_TRUE(memory->fill(6).ok());
  const auto handle = memory->handle();
  ASSERT_TRUE(handle.ok()) << handle.status().to_string();
  EXPECT_EQ(handle->bytes, 1000u);
  send_handle(other.socket(), *handle);
  ASSERT_EQ(word_from(other.socket()), 'd');
  EXPECT_EQ(bytes_of(*memory), std::vector<std::byte>(1000, std::byte{7}));
  say(other.socket(), 'g');
  EXPECT_EQ(word_from(other.socket()), 7);
  EXPECT_EQ(other.status(), 0);
}

// By descriptor the memory lives as long as anybody has it; by 64 bytes it is for who made it to wait, and
// the fake driver shows what becomes of those who do not.
TEST_P(GpuSharing, MemoryThatIsFreedWhileItIsOpenIsThereByDescriptorOnly) {
  Other other(adds_one);
  auto memory = DeviceMemory::create_shared(gpu(), 1000);
  ASSERT_TRUE(memory.ok());
  ASSERT_TRUE(memory->fill(6).ok());
  send_handle(other.socket(), *memory->handle());
  ASSERT_EQ(word_from(other.socket()), 'd');
  *memory = DeviceMemory();
  say(other.socket(), 'g');
  EXPECT_EQ(word_from(other.socket()), GetParam() ? 7 : static_cast<char>(0xdd));
  EXPECT_EQ(other.status(), 0);
}

TEST_P(GpuSharing, AHandleOfAnotherGpuIsRefusedByBothNames) {
  pretend(GetParam() ? "devices=2,descriptors=1" : "devices=2,descriptors=0");
  auto memory = DeviceMemory::create_shared(gpu(0), 1000);
  ASSERT_TRUE(memory.ok());
  const auto handle = memory->handle();
  ASSERT_TRUE(handle.ok());
  const auto refused = DeviceMemory::open(gpu(1), *handle);
  EXPECT_EQ(refused.status().reason(), Reason::mixed_devices);
  EXPECT_THAT(refused.status().message(), HasSubstr("GPU-5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a00"));
  EXPECT_THAT(refused.status().message(),
              HasSubstr("cuda:1 (fake GPU 1, GPU-5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a01)"));
}

TEST_P(GpuSharing, AHandleThatReachesOutOfItsAllocationIsRefused) {
  auto memory = DeviceMemory::create_shared(gpu(), 1000);
  ASSERT_TRUE(memory.ok());
  auto handle = memory->handle();
  ASSERT_TRUE(handle.ok());
  handle->offset = handle->allocation;
  const auto refused = DeviceMemory::open(gpu(), *handle);
  EXPECT_EQ(refused.status().reason(), Reason::bad_value);
}

// A process whose stream fills what it is sent, and which gives that up before its stream has come to it: by
// the fake driver that is when somebody waits, and what unmaps does not.
int fills_and_leaves(int socket) {
  const auto device = gpu();
  auto opened = DeviceMemory::open(device, receive_handle(socket), DeviceMemory::Users::packages);
  const auto stream = DeviceStream::create(device);
  if (!opened.ok() || !stream.ok()) return 1;
  const Status enqueued = device->run("cuMemsetD8Async", [&](const api::Functions& call) {
    return call.cuMemsetD8Async(opened->address(), 7, opened->bytes(), stream->handle());
  });
  if (!enqueued.ok()) return 2;
  *opened = DeviceMemory();
  return stream->wait().ok() ? 0 : 3;
}

TEST_P(GpuSharing, WhatPackagesWorkOnIsClosedOnceTheGpuHasDoneThat) {
  Other other(fills_and_leaves);
  const auto memory = DeviceMemory::create_shared(gpu(), 64);
  ASSERT_TRUE(memory.ok() && memory->fill(1).ok());
  send_handle(other.socket(), *memory->handle());
  EXPECT_EQ(other.status(), 0);
  EXPECT_EQ(bytes_of(*memory), std::vector<std::byte>(64, std::byte{7}));
}

TEST_P(GpuSharing, MemoryThatIsSpentIsRefusedWithBothSizes) {
  pretend(GetParam() ? "bytes=3000000,descriptors=1" : "bytes=3000000,descriptors=0");
  const auto device = gpu();
  const auto first = DeviceMemory::create_shared(device, 1000);
  ASSERT_TRUE(first.ok());
  const auto second = DeviceMemory::create_shared(device, 1000);
  EXPECT_EQ(second.status().reason(), Reason::out_of_memory);
  EXPECT_THAT(second.status().message(), HasSubstr("902848 bytes free of 3000000"));
}

INSTANTIATE_TEST_SUITE_P(Ways, GpuSharing, ::testing::Bool(),
                         [](const auto& way) { return way.param ? "ByDescriptor" : "ByBytes"; });

// ---- memory of others

api::DevicePointer made_elsewhere(const Device& device, std::size_t bytes) {
  api::DevicePointer pointer = 0;
  const Status made =
      device.run("cuMemAlloc", [&](const api::Functions& call) { return call.cuMemAlloc(&pointer, bytes); });
  EXPECT_TRUE(made.ok()) << made.to_string();
  return pointer;
}

TEST(GpuForeign, AnAddressWithinAnAllocationIsFoundAndHandedOverByItsBase) {
  pretend("devices=2");
  Other other(adds_one);
  const auto device = gpu(1);
  const api::DevicePointer base = made_elsewhere(*device, 1000);
  const auto found = foreign_memory(base + 128, 16);
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->gpu.ordinal, 1);
  EXPECT_EQ(found->base, base);
  EXPECT_EQ(found->allocation, 1000u);
  auto memory = borrowed(device, *found, nullptr);
  ASSERT_TRUE(memory.ok()) << memory.status().to_string();
  ASSERT_TRUE(memory->fill(6).ok());
  auto handle = handle_of(*found);
  ASSERT_TRUE(handle.ok()) << handle.status().to_string();
  EXPECT_EQ(handle->offset, 128u);
  EXPECT_EQ(handle->allocation, 1000u);
  handle->uuid.back() = '0';  // of the GPU that the other process opens
  send_handle(other.socket(), *handle);
  ASSERT_EQ(word_from(other.socket()), 'd');
  EXPECT_EQ(bytes_of(*memory), std::vector<std::byte>(16, std::byte{7}));
  say(other.socket(), 'e');
  EXPECT_EQ(word_from(other.socket()), 7);
  EXPECT_EQ(other.status(), 0);
}

TEST(GpuForeign, BytesThatLeaveTheirAllocationAreRefused) {
  pretend("devices=1");
  const auto device = gpu();
  const api::DevicePointer base = made_elsewhere(*device, 1000);
  EXPECT_TRUE(foreign_memory(base + 999, 1).ok());
  for (const auto& [offset, bytes] : {std::pair(999u, std::uint64_t{2}), std::pair(0u, UINT64_MAX)}) {
    const auto refused = foreign_memory(base + offset, bytes);
    EXPECT_EQ(refused.status().reason(), Reason::bad_value);
    EXPECT_THAT(refused.status().message(), HasSubstr("reach out of their allocation, which has 1000 bytes"));
  }
}

TEST(GpuForeign, MemoryOfTheHostIsNamed) {
  pretend("devices=1");
  const auto device = gpu();
  const int here = 0;
  const auto refused = foreign_memory(reinterpret_cast<api::DevicePointer>(&here), 4);
  EXPECT_EQ(refused.status().reason(), Reason::bad_value);
  EXPECT_THAT(refused.status().message(), HasSubstr("is no memory of a GPU in this process"));
}

TEST(GpuForeign, WhatIsMappedByHandIsHandedToNobodyAndTheCureIsNamed) {
  pretend("devices=1,descriptors=1");
  const auto device = gpu();
  const auto mapped = DeviceMemory::create_shared(device, 1000);
  ASSERT_TRUE(mapped.ok());
  const auto found = foreign_memory(mapped->address(), 1000);
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  const auto refused = handle_of(*found);
  EXPECT_EQ(refused.status().reason(), Reason::bad_value);
  EXPECT_THAT(refused.status().message(), HasSubstr("make it with cudaMalloc"));
  EXPECT_TRUE(borrowed(device, *found, nullptr).ok());
}

TEST(GpuForeign, ABorrowedOwnerIsKeptAsLongAsTheMemory) {
  pretend("devices=1");
  const auto device = gpu();
  const auto found = foreign_memory(made_elsewhere(*device, 1000), 1000);
  ASSERT_TRUE(found.ok());
  auto owner = std::make_shared<int>(0);
  const std::weak_ptr<int> alive = owner;
  {
    auto memory = borrowed(device, *found, std::move(owner));
    ASSERT_TRUE(memory.ok());
    const DeviceMemory moved = *std::move(memory);
    EXPECT_FALSE(alive.expired());
  }
  EXPECT_TRUE(alive.expired());
  EXPECT_TRUE(foreign_memory(found->address, 1).ok()) << "it is its owner's to free";
}

// ---- views

TEST(GpuTransfer, AnyViewGoesThereAndBack) {
  pretend("devices=1");
  const auto device = gpu();
  constexpr std::uint64_t first_seed = 90'001;
  for (std::uint64_t seed = first_seed; seed < first_seed + 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    constexpr std::int64_t bytes = 600;
    const plane::View view = plane::testing::random_view(random, bytes);
    if (!plane::check_target(view, bytes).ok()) continue;
    const auto packed = plane::Packed::of(view);
    ASSERT_TRUE(packed.ok());
    std::vector<std::byte> host(bytes), values(packed->bytes());
    for (std::byte& byte : host) byte = static_cast<std::byte>(random());
    for (std::byte& byte : values) byte = static_cast<std::byte>(random());
    auto memory = DeviceMemory::create(device, bytes);
    ASSERT_TRUE(memory.ok() && memory->write(host).ok());
    // In two pieces, which meet anywhere.
    const std::uint64_t cut = packed->bytes() == 0 ? 0 : random() % packed->bytes();
    const std::span<const std::byte> all(values);
    ASSERT_TRUE(write_packed(*memory, *packed, 0, all.first(cut)).ok());
    ASSERT_TRUE(write_packed(*memory, *packed, cut, all.subspan(cut)).ok());
    packed->write(host.data(), 0, values);
    ASSERT_EQ(bytes_of(*memory), host) << plane::to_string(view);
    std::vector<std::byte> back(values.size());
    ASSERT_TRUE(read_packed(*memory, *packed, 0, back).ok());
    packed->read(host.data(), 0, values);
    ASSERT_EQ(back, values) << plane::to_string(view);
  }
}

// ---- names

TEST(GpuNames, AreOrdinalsAndUuids) {
  pretend("devices=2");
  codegen::Compiler compiler;
  Devices devices(compiler);
  EXPECT_EQ((*devices.find("cuda"))->name(), "cuda:0");
  EXPECT_EQ((*devices.find("cuda:1"))->name(), "cuda:1");
  EXPECT_EQ((*devices.find("GPU-5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a01"))->name(), "cuda:1");
  EXPECT_THAT(devices.find("cuda:2").status().message(), HasSubstr("cuda:0 (fake GPU 0, GPU-"));
  EXPECT_THAT(devices.find("tpu").status().message(), HasSubstr("expected 'cpu', 'cuda:0'"));
  EXPECT_THAT(devices.find("cuda:-1").status().message(), HasSubstr("expected 'cpu'"));
}

TEST(GpuNames, OfThoseThatAreNotChosenAreRefused) {
  pretend("devices=2");
  codegen::Compiler compiler;
  Devices devices(compiler, {{"GPU-5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a01"}});
  EXPECT_EQ((*devices.find("cuda"))->name(), "cuda:1");
  EXPECT_FALSE(devices.find("cuda:0").ok());
  Devices none(compiler, std::vector<std::string>());
  EXPECT_THAT(none.find("cuda:0").status().message(), HasSubstr("--devices none"));
}

TEST(GpuNames, WithoutADriverTheCureIsNamed) {
  ::setenv("EAGLE_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  codegen::Compiler compiler;
  Devices devices(compiler);
  const auto refused = devices.find("cuda:0");
  EXPECT_THAT(refused.status().message(), HasSubstr("device 'cuda:0': no CUDA driver"));
  EXPECT_THAT(refused.status().message(), HasSubstr("install NVIDIA's driver"));
}

}  // namespace
}  // namespace eagle::run::cuda
