// damaged_states FILES MODEL_DIR: so many state files that somebody has changed, of the decoder in
// MODEL_DIR: bits flipped, ends cut off, parts of other files, other models, versions, dtypes,
// shapes and positions, with and without the checksum that belongs to them, and signed with another
// key. Each must be refused with the status that is due, or say the same as before.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/generator.h"
#include "engine/model_directory.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/state/state_file.h"
#include "tests/testing/random_model.h"
#include "tests/testing/state_file_parts.h"
#include "tests/testing/test_backend.h"

namespace hippodrome {
namespace {

// It is no code that proves anything, but depends on the key and all parts.
StateSigner SignerOf(const std::string& key) {
  return [key](std::span<const std::span<const std::byte>> parts) {
    Xxh3 xxh3;
    xxh3.Add(key);
    for (const auto part : parts) xxh3.Add(part);
    return xxh3.Hex();
  };
}

// How a file is damaged, and what the reader says to that.
struct Damage {
  const char* name;
  absl::StatusCode expected;
  bool may_change_nothing;  // as a space does in the header
};
constexpr std::array kDamages = {
    Damage{"bits flipped", absl::StatusCode::kInvalidArgument, true},
    Damage{"cut", absl::StatusCode::kInvalidArgument, false},
    Damage{"parts of another state", absl::StatusCode::kInvalidArgument, true},
    Damage{"another model", absl::StatusCode::kFailedPrecondition, false},
    Damage{"another dtype", absl::StatusCode::kInvalidArgument, false},
    Damage{"another shape", absl::StatusCode::kInvalidArgument, false},
    Damage{"another version", absl::StatusCode::kInvalidArgument, false},
    Damage{"another position", absl::StatusCode::kInvalidArgument, false},
    Damage{"not finite", absl::StatusCode::kInvalidArgument, false},
    Damage{"another owner's signature", absl::StatusCode::kInvalidArgument, false},
};

class Damager {
 public:
  Damager(std::vector<std::string> files, uint64_t seed)
      : files_(std::move(files)), random_(seed) {}

  // The file that was damaged is file().
  std::string Damaged(size_t kind) {
    which_ = Below(files_.size());
    std::string bytes = file();
    switch (kind) {
      case 0:
        for (uint64_t i = 1 + Below(8); i > 0; --i) Flip(bytes);
        return bytes;
      case 1:
        bytes.resize(Below(bytes.size()));
        return bytes;
      case 2:
        return Spliced(std::move(bytes));
      default:
        return Changed(kind);
    }
  }
  const std::string& file() const { return files_[which_]; }

 private:
  uint64_t Below(uint64_t count) { return random_() % count; }

  // In the header as often as in the data, which are much longer.
  void Flip(std::string& bytes) {
    const uint64_t size = Below(2) == 0 ? std::min<uint64_t>(bytes.size(), 4096) : bytes.size();
    bytes[Below(size)] ^= static_cast<char>(1 << Below(8));
  }

  std::string Spliced(std::string bytes) {
    const std::string& other = files_[Below(files_.size())];
    const uint64_t at = Below(std::min(bytes.size(), other.size()));
    const uint64_t size = 1 + Below(std::min(bytes.size(), other.size()) - at);
    return bytes.replace(at, size, other, at, size);
  }

  // With the checksum that belongs to what it says now.
  std::string Changed(size_t kind) {
    StateFileParts parts(file());
    StateFileParts::Tensor& tensor = Any(parts);
    const std::string name = kDamages[kind].name;
    if (name == "another model") parts.metadata["model"][Below(32)] ^= 1;
    if (name == "another version") parts.metadata["version"] = std::to_string(2 + Below(100));
    if (name == "another position") {
      const int64_t position = std::stoll(parts.metadata["position"]);
      parts.metadata["position"] = std::to_string(position + 1 + static_cast<int64_t>(Below(9)));
    }
    if (name == "another dtype") {
      tensor.spec.dtype = DType::kBF16;
      tensor.data.resize(tensor.data.size() / 2);
    }
    if (name == "another shape") tensor.spec.shape.push_back(1);
    if (name == "not finite") {
      const uint64_t at = Below(tensor.data.size() / 4) * 4;
      tensor.data.replace(
          at, 4, Below(2) == 0 ? std::string("\0\0\xc0\x7f", 4) : std::string("\0\0\x80\xff", 4));
    }
    return parts.Sealed();
  }

  // One that holds floats.
  StateFileParts::Tensor& Any(StateFileParts& parts) {
    while (true) {
      const auto found = std::next(parts.tensors.begin(), Below(parts.tensors.size()));
      if (found->first != "tokens") return found->second;
    }
  }

  const std::vector<std::string> files_;
  std::mt19937_64 random_;
  size_t which_ = 0;
};

std::vector<SavedState> SomeStates(Backend& backend, const HybridH3& model) {
  const auto generator =
      Generator::Create(backend, model, {.max_sequences = 1, .key_value_bytes = int64_t{1} << 24})
          .value();
  std::vector<SavedState> states;
  for (const int64_t tokens : {1, 5, 70, 300}) {
    GenerationRequest request{.prompt = RandomIds(tokens, model.config().vocab_size, 1),
                              .max_tokens = 2};
    request.ignore_eos = true;
    const SequenceId id = generator->Admit(request).value();
    std::vector<TokenEvent> events;
    generator->Prefill(Generator::Clock::time_point::max(), events);
    states.push_back(generator->Save(id).value());
    generator->Release(id);
  }
  return states;
}

// Whether all was refused as it should be.
bool Run(const StateLayout& layout, const std::vector<SavedState>& states, int64_t count) {
  const StateSigner ours = SignerOf("ours");
  std::vector<std::string> files, others;
  std::map<std::string, SavedState> meaning;
  for (const SavedState& state : states) {
    files.push_back(WriteStateFile(state, layout, {.sign = ours}).value());
    others.push_back(WriteStateFile(state, layout, {.sign = SignerOf("theirs")}).value());
    meaning.emplace(files.back(), state);
  }
  Damager damager(files, 1);
  std::array<int64_t, kDamages.size()> refused = {}, same = {};
  for (int64_t i = 0; i < count; ++i) {
    const auto kind = static_cast<size_t>(i) % kDamages.size();
    const Damage& damage = kDamages[kind];
    const bool signature = kind + 1 == kDamages.size();
    const std::string bytes =
        signature ? others[static_cast<size_t>(i / 10) % others.size()] : damager.Damaged(kind);
    const auto read =
        signature ? ReadStateFile(bytes, layout, {.sign = ours}) : ReadStateFile(bytes, layout);
    if (!read.ok() && read.status().code() == damage.expected) {
      ++refused[kind];
    } else if (read.ok() && damage.may_change_nothing && *read == meaning.at(damager.file())) {
      ++same[kind];
    } else {
      fmt::print("file {}, {}: {}\n", i, damage.name,
                 read.ok() ? "was taken as another state" : Message(read.status()));
      return false;
    }
  }
  for (size_t kind = 0; kind < kDamages.size(); ++kind) {
    fmt::print("{}: {} refused, {} said the same\n", kDamages[kind].name, refused[kind],
               same[kind]);
  }
  return true;
}

int Main(int64_t count, const std::string& directory) {
  const std::unique_ptr<Backend> backend = MakeTestBackend().backend;
  const auto loaded = LoadDecoderDirectory(*backend, directory);
  if (!loaded.ok()) {
    fmt::print(stderr, "{}\n", Message(loaded.status()));
    return 1;
  }
  const auto generator =
      Generator::Create(*backend, *loaded->model, {.max_sequences = 1, .key_value_bytes = 1 << 20});
  if (!Run((*generator)->state_layout(), SomeStates(*backend, *loaded->model), count)) return 1;
  fmt::print("{} files, none taken as another state\n", count);
  return 0;
}

}  // namespace
}  // namespace hippodrome

int main(int argc, char** argv) {
  const int64_t count = argc == 3 ? std::atoll(argv[1]) : 0;
  if (count < 1) {
    fmt::print(stderr, "usage: damaged_states FILES MODEL_DIR\n");
    return 2;
  }
  return hippodrome::Main(count, argv[2]);
}
