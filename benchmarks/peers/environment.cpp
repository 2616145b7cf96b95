#include "environment.hpp"

#include "case.hpp"

#include <link.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <utility>

namespace bench {

namespace {

constexpr const char* told[] = {
    "OMP_NUM_THREADS",        "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_",      "TENET_ISA"};

bool has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

/// Whether the variable had to be changed.
bool set(const char* name, const std::string& value, bool overwrite) {
  const char* old = std::getenv(name);
  if (old && (!overwrite || value == old)) return false;
  return setenv(name, value.c_str(), 1) == 0;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string date() {
  const std::time_t now = std::time(nullptr);
  char out[32];
  std::strftime(out, sizeof out, "%Y-%m-%d %H:%M UTC", std::gmtime(&now));
  return out;
}

/// More than one means teams of threads that get in each other's way.
std::string openmp_runtimes() {
  std::string found;
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* out) {
        const char* slash = std::strrchr(library->dlpi_name, '/');
        const char* file = slash ? slash + 1 : library->dlpi_name;
        for (const char* runtime : {"libgomp", "libomp", "libiomp"}) {
          if (std::strncmp(file, runtime, std::strlen(runtime)) == 0)
            *static_cast<std::string*>(out) += std::string(" ") + file;
        }
        return 0;
      },
      &found);
  return found.empty() ? " none" : found;
}

}  // namespace

void prepare_environment(char** argv, int threads) {
  const std::string count = std::to_string(threads), plenty = "4294967296";
  bool changed = set("OMP_NUM_THREADS", count, true);
  changed |= set("OPENBLAS_NUM_THREADS", count, true);
  changed |= set("MALLOC_MMAP_THRESHOLD_", plenty, false);
  changed |= set("MALLOC_TRIM_THRESHOLD_", plenty, false);
  changed |= set("MALLOC_TOP_PAD_", "67108864", false);
  if (has_avx512()) changed |= set("OPENBLAS_CORETYPE", "SKYLAKEX", false);
  if (!changed) return;
  execv("/proc/self/exe", argv);
  std::perror("bench_compare: could not start anew");
  std::exit(1);
}

void pin() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(sched_getcpu(), &here);
  sched_setaffinity(0, sizeof here, &here);
}

std::vector<std::string> describe_environment(int threads) {
  std::vector<std::string> lines = {"date: " + date(), "processor: " + processor()};
  lines.push_back("threads: " + std::to_string(threads) + (threads == 1 ? ", pinned" : "") +
                  "; OpenMP:" + openmp_runtimes());
  for (const Library& library : libraries()) lines.push_back(library.name + ": " + library.description);
  std::string variables = "environment:";
  for (const char* name : told) {
    const char* value = std::getenv(name);
    if (!value) continue;
    if (variables.size() > 70) lines.push_back(std::exchange(variables, "   "));
    variables += std::string(" ") + name + "=" + value;
  }
  lines.push_back(variables);
  return lines;
}

}  // namespace bench
