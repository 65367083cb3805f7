// The Python environment: whether `import eagle` gets this project's package.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>

#include "client/doctor/machine.h"
#include "engine/base/unique_fd.h"

extern char** environ;

namespace eagle::doctor {
namespace {

using enum Severity;

constexpr std::chrono::seconds patience{10};
constexpr std::size_t most_output = 1u << 20;

// A line a distribution that has files of a package `eagle`, and one for what would be imported.
constexpr const char* question = R"python(
import importlib.metadata, importlib.util
def say(*words):
    print("\t".join(str(word).replace("\t", " ").replace("\n", " ") for word in words))
for found in importlib.metadata.distributions():
    files = [str(file).replace("\\", "/") for file in found.files or []]
    if any(file.startswith("eagle/") for file in files):
        # Its name, and a file that others with a package `eagle` have not.
        ours = found.metadata["Name"] == "eagled" or any(file == "eagle/_openmp.py" for file in files)
        say("distribution", found.metadata["Name"], found.version, found.locate_file(""), int(ours))
spec = importlib.util.find_spec("eagle")
if spec is not None:
    say("imported", spec.origin or list(spec.submodule_search_locations or ["?"])[0])
)python";

// What the program prints; it is ended when its time is over. SYSTEM.
StatusOr<std::string> output_of(const std::string& program, const std::vector<std::string>& arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return Status(Reason::system, std::string("pipe: ") + std::strerror(errno));
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, program.c_str(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return Status(Reason::system, "'" + program + "' cannot be started: " + std::strerror(error));
  writing.reset();
  std::string text;
  bool whole = false;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (text.size() < most_output) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ready{reading.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) == 0) break;
    char part[4096];
    const ssize_t count = ::read(reading.get(), part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    whole = count == 0;
    if (count <= 0) break;
    text.append(part, static_cast<std::size_t>(count));
  }
  if (!whole) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!whole) return Status(Reason::system, "'" + program + "' did not answer in time, or said too much");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Status(Reason::system, "'" + program + "' ended badly when it was asked about its packages");
  return text;
}

}  // namespace

PythonPackages packages_of(const std::string& python) {
  PythonPackages packages;
  packages.python = python;
  const StatusOr<std::string> said = output_of(python, {"-W", "ignore", "-c", question});
  packages.status = said.status();
  if (!said.ok()) return packages;
  std::istringstream lines(*said);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind;
    std::getline(words, kind, '\t');
    if (kind == "imported") {
      std::getline(words, packages.imported, '\t');
    } else if (kind == "distribution") {
      Distribution one;
      std::string ours;
      std::getline(words, one.name, '\t');
      std::getline(words, one.version, '\t');
      std::getline(words, one.folder, '\t');
      std::getline(words, ours, '\t');
      one.ours = ours == "1";
      packages.distributions.push_back(std::move(one));
    }
  }
  return packages;
}

Findings check_python(const PythonPackages& packages) {
  const auto one = [&](Severity severity, std::string what, std::string cure) {
    return Findings{{"python.package", severity, packages.python + ": " + std::move(what), std::move(cure)}};
  };
  const std::string pip = packages.python + " -m pip ";
  if (!packages.status.ok())
    return one(note, packages.status.message(), "name another interpreter with --python");
  Findings found;
  const Distribution* own = nullptr;
  for (const Distribution& distribution : packages.distributions) {
    if (distribution.ours) {
      if (own != nullptr) {
        found.push_back(
            one(problem, "the package is installed twice, in " + own->folder + " and " + distribution.folder,
                pip + "uninstall " + own->name + ", until it is gone, then install it once")[0]);
      }
      own = &distribution;
      continue;
    }
    found.push_back(one(problem,
                        "another distribution, " + distribution.name + " " + distribution.version +
                            ", provides a package `eagle` too, in " + distribution.folder,
                        pip + "uninstall " + distribution.name + "; " + pip +
                            "install --force-reinstall eagled (each has written over files of the other); or "
                            "give each an environment")[0]);
  }
  if (own == nullptr) {
    if (!packages.imported.empty() && found.empty())
      return one(note, "`import eagle` would load " + packages.imported + ", which no installed package has",
                 "");
    if (found.empty())
      return one(note, "has no package `eagle`", pip + "install the project's wheel, for clients in Python");
    return found;
  }
  if (!packages.imported.empty() && !packages.imported.starts_with(own->folder)) {
    found.push_back(one(problem,
                        "`import eagle` would load " + packages.imported +
                            ", not the package that is installed in " + own->folder,
                        "rename or remove it, or start Python from another folder; look at PYTHONPATH")[0]);
  }
  if (own->version != EAGLE_VERSION) {
    found.push_back(one(warning, "the package is " + own->version + ", and this eaglectl " EAGLE_VERSION,
                        pip + "install --upgrade eagled, of the release of this eaglectl")[0]);
  }
  if (found.empty()) return one(fine, "the package is " + own->version + ", in " + own->folder, "");
  return found;
}

}  // namespace eagle::doctor
