// Whether the time that a wrong API key takes tells how much of it is right: keys that share ever
// more of their first characters with the right one, or of their hash, against keys that share
// none.
//   key_timing [SAMPLES]
// Prints Welch's t of each comparison. All samples are taken in one random order.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/access/access_control.h"
#include "server/access/key_secret.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/http_client.h"
#include "tests/testing/routes_server.h"
#include "tests/testing/temporary_directory.h"

namespace {

using hippodrome::KeyDigest;
using Clock = std::chrono::steady_clock;

struct Sample {
  double sum = 0, squares = 0;
  int64_t count = 0;

  void Add(double value) {
    sum += value;
    squares += value * value;
    ++count;
  }
  double mean() const { return sum / static_cast<double>(count); }
  double variance() const {
    const auto n = static_cast<double>(count);
    return (squares - sum * sum / n) / (n - 1);
  }
};

double Welch(const Sample& a, const Sample& b) {
  return (a.mean() - b.mean()) / std::sqrt(a.variance() / static_cast<double>(a.count) +
                                           b.variance() / static_cast<double>(b.count));
}

// Times ask() after prepare(group), for groups in random order, and compares each with the first.
// Beyond the 95th percentile of all is the machine, not the server.
void Compare(const char* what, const std::vector<size_t>& shared, int64_t samples,
             const std::function<void(size_t group)>& prepare, const std::function<void()>& ask) {
  std::mt19937_64 random(1);
  std::vector<std::pair<size_t, double>> times;
  for (size_t group = 0; group < shared.size(); ++group) {
    for (int64_t i = 0; i < samples; ++i) times.emplace_back(group, 0);
  }
  std::shuffle(times.begin(), times.end(), random);
  for (auto& [group, time] : times) {
    prepare(group);
    const Clock::time_point begin = Clock::now();
    ask();
    time = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  }
  std::vector<double> sorted;
  for (const auto& [group, time] : times) sorted.push_back(time);
  std::sort(sorted.begin(), sorted.end());
  const double limit = sorted[sorted.size() * 95 / 100];
  std::vector<Sample> groups(shared.size());
  for (const auto& [group, time] : times) {
    if (time <= limit) groups[group].Add(time);
  }
  for (size_t g = 1; g < groups.size(); ++g) {
    std::printf("%-28s %3zu shared: %8.1f ns, %zu: %8.1f ns, t = %6.2f, samples %lld and %lld\n",
                what, shared[g], groups[g].mean(), shared[0], groups[0].mean(),
                Welch(groups[g], groups[0]), static_cast<long long>(groups[g].count),
                static_cast<long long>(groups[0].count));
  }
}

// The right secret's first `shared` characters, and then random ones of which the first is wrong.
std::string Near(const std::string& right, size_t shared) {
  std::string secret;
  do {
    secret = right.substr(0, shared) + hippodrome::NewSecret().value().substr(shared);
  } while (secret[shared] == right[shared] && shared >= 3);
  return secret;
}

// So that no group differs from another by its characters alone.
constexpr size_t kKeysOfGroup = 4096;

}  // namespace

int main(int argc, char** argv) {
  const int64_t samples = argc > 1 ? std::atoll(argv[1]) : 100000;
  const std::string right = hippodrome::NewSecret().value();
  std::vector<KeyDigest> digests;
  for (int i = 0; i < 16; ++i) digests.push_back(hippodrome::DigestOf(std::to_string(i)));
  digests[7] = hippodrome::DigestOf(right);

  const std::vector<size_t> bytes = {0, 1, 8, 16, 31};
  std::vector<KeyDigest> near;
  for (const size_t shared : bytes) {
    KeyDigest digest = digests[7];
    for (size_t i = shared; i < digest.size(); ++i) digest[i] ^= 0x55;
    near.push_back(digest);
  }
  KeyDigest digest;
  Compare(
      "comparison, bytes of hash", bytes, samples, [&](size_t group) { digest = near[group]; },
      [&] {
        // Many times, for a clock ticks slower than one of them.
        for (int i = 0; i < 8; ++i) {
          if (hippodrome::FindDigest(digests, digest)) std::abort();
        }
      });

  const std::vector<size_t> characters = {3, 4, 12, 24, 45};
  std::vector<std::vector<std::string>> fields(characters.size());
  for (size_t group = 0; group < characters.size(); ++group) {
    for (size_t i = 0; i < kKeysOfGroup; ++i) {
      fields[group].push_back("Bearer " + Near(right, characters[group]));
    }
  }
  // All lie in the same place when they are looked at, and are of one length.
  size_t turn = 0;
  std::string field = fields[0][0];
  const auto choose = [&](size_t group) {
    const std::string& chosen = fields[group][++turn % kKeysOfGroup];
    std::copy(chosen.begin(), chosen.end(), field.begin());
  };
  const hippodrome::TemporaryDirectory directory;
  const std::string path = directory.Write(
      "keys.json", "{\"keys\": [" + hippodrome::KeyEntry("k", digests[7], false) + "]}");
  if (chmod(path.c_str(), 0600) != 0) return 1;
  hippodrome::Metrics metrics;
  hippodrome::AccessControl access(path, metrics);
  if (!access.Reload().ok()) return 1;
  Compare("whole check, characters", characters, samples, choose, [&] {
    if (access.Check(field, hippodrome::Access::kKey).ok()) std::abort();
  });

  std::vector<std::unique_ptr<hippodrome::ServedModel>> models;
  models.push_back(hippodrome::NewServedModel(hippodrome::NewFakeModel("m"), metrics));
  const hippodrome::RoutesServer server(std::move(models), metrics, path);
  hippodrome::HttpClient client(server.address());
  Compare("over HTTP, characters", characters, samples, choose, [&] {
    client.Send("GET /v1/models HTTP/1.1\r\nHost: h\r\nAuthorization: " + field + "\r\n\r\n");
    if (client.Read().status != 401) std::abort();
  });
  return 0;
}
