#include "tools/convert/tokenizer_files.h"

#include <filesystem>

#include "engine/status.h"
#include "engine/tokenizer/bpe.h"
#include "tools/convert/random_access_file.h"

namespace hippodrome {
namespace {

constexpr uint64_t kLargestFile = uint64_t{64} << 20;

struct Pair {
  const char* vocab;
  const char* merges;
};
constexpr Pair kPairs[] = {{"vocab.json", "merges.txt"}, {"gpt2-encoder.json", "gpt2-vocab.bpe"}};

}  // namespace

absl::StatusOr<TokenizerFiles> ReadTokenizerFiles(const std::string& directory,
                                                  int64_t vocab_size) {
  for (const Pair& pair : kPairs) {
    const std::string vocab = directory + "/" + pair.vocab;
    if (!std::filesystem::exists(vocab)) continue;
    TokenizerFiles files;
    HIPPODROME_ASSIGN_OR_RETURN(files.vocab_json, ReadSmallFile(vocab, kLargestFile));
    HIPPODROME_ASSIGN_OR_RETURN(files.merges,
                                ReadSmallFile(directory + "/" + pair.merges, kLargestFile));
    const auto tokenizer = BpeTokenizer::Parse(files.vocab_json, files.merges);
    if (!tokenizer.ok()) {
      return InvalidArgument("tokenizer " + directory + ": " + Message(tokenizer.status()));
    }
    if ((*tokenizer)->vocab_size() > vocab_size) {
      return InvalidArgument("tokenizer " + directory + " has " +
                             std::to_string((*tokenizer)->vocab_size()) +
                             " tokens; the model's vocabulary has " + std::to_string(vocab_size));
    }
    return files;
  }
  return NotFound("no tokenizer in " + directory +
                  "; expected vocab.json and merges.txt, or gpt2-encoder.json and gpt2-vocab.bpe");
}

}  // namespace hippodrome
