#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/wordpiece.h"
#include "kernels/cpu/base/thread_pool.h"
#include "kernels/make_backend.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/progress.h"
#include "tools/command_line/subcommand.h"
#include "tools/command_line/text_file.h"
#include "tools/commands/commands.h"
#include "tools/convert/staged_directory.h"
#include "tools/evaluate/data_file.h"
#include "tools/train/data/encode_text.h"
#include "tools/train/data/tokenized_text.h"
#include "tools/train/tokenizer/train_bpe.h"
#include "tools/train/tokenizer/train_wordpiece.h"
#include "tools/train/tokenizer/word_counts.h"

namespace hippodrome {
namespace {

// The texts of either command.
Option TextsOption() {
  return {"input", "FILE", "UTF-8 text, which may be packed by gzip; may be repeated"};
}

const CommandSpec kEncodeSpec = {
    .name = "tokenizer encode",
    .summary = "Writes the token ids of texts, for training.",
    .usage = {"--tokenizer DIR --input FILE... --output FILE [OPTION]..."},
    .description = "A document ends at <|endoftext|> in the text and at the end of a file.",
    .options = {{"tokenizer", "DIR", "has vocab.json and merges.txt, or vocab.txt"},
                TextsOption(),
                {"output", "FILE", "safetensors to write"},
                ThreadsOption(),
                PinOption(),
                NumaNodeOption()}};

// One of the two.
struct Tokenizer {
  std::unique_ptr<BpeTokenizer> bpe;
  std::unique_ptr<WordPieceTokenizer> wordpiece;
};

absl::StatusOr<Tokenizer> ReadTokenizer(const std::string& directory) {
  Tokenizer tokenizer;
  if (std::filesystem::exists(directory + "/vocab.txt")) {
    HIPPODROME_ASSIGN_OR_RETURN(tokenizer.wordpiece, WordPieceTokenizer::Read(directory));
  } else {
    HIPPODROME_ASSIGN_OR_RETURN(tokenizer.bpe, BpeTokenizer::Read(directory));
  }
  return tokenizer;
}

TokenizedText NoText(const Tokenizer& tokenizer) {
  return tokenizer.bpe != nullptr
             ? TokenizedText{.kind = TokenizerKind::kBpe, .vocab_size = tokenizer.bpe->vocab_size()}
             : TokenizedText{.kind = TokenizerKind::kWordPiece,
                             .vocab_size = tokenizer.wordpiece->vocab_size()};
}

absl::Status AppendFile(const Tokenizer& tokenizer, const std::string& path, ThreadPool& pool,
                        TokenizedText& tokens) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadDataFile(path));
  Progress bar("encoding " + path);
  const auto progress = [&](int64_t done, int64_t total) { bar.Update(done, total); };
  if (tokenizer.bpe != nullptr) return AppendText(*tokenizer.bpe, text, pool, progress, tokens);
  AppendText(*tokenizer.wordpiece, text, pool, progress, tokens);
  return absl::OkStatus();
}

absl::Status Encode(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line.Required("tokenizer"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string output, line.Required("output"));
  HIPPODROME_ASSIGN_OR_RETURN(const CpuOptions cpu, line.PlaceThreads());
  HIPPODROME_RETURN_IF_ERROR(line.Required("input").status());
  HIPPODROME_ASSIGN_OR_RETURN(const Tokenizer tokenizer, ReadTokenizer(directory));
  TokenizedText tokens = NoText(tokenizer);
  const std::shared_ptr<ThreadPool> pool = MakeThreadPool(cpu);
  for (const std::string& input : line.All("input")) {
    HIPPODROME_RETURN_IF_ERROR(AppendFile(tokenizer, input, *pool, tokens));
  }
  if (tokens.tokens.empty()) return InvalidArgument("there is no text in the input");
  HIPPODROME_RETURN_IF_ERROR(WriteTokenFile(output, tokens));
  std::printf("%zu tokens\n", tokens.tokens.size());
  return absl::OkStatus();
}

const CommandSpec kTrainSpec = {
    .name = "tokenizer train",
    .summary = "Makes a tokenizer from texts.",
    .usage = {"--kind bpe|wordpiece --vocab N --input FILE... --out DIR"},
    .description = "",
    .options = {
        {"kind", "bpe|wordpiece",
         "byte-level byte-pair encoding (vocab.json and merges.txt, for decoders) or uncased "
         "WordPiece (vocab.txt, for encoders)"},
        {"vocab", "N", "tokens that it knows"},
        TextsOption(),
        {"out", "DIR", "folder to write"}}};

absl::StatusOr<WordCounts> CountWords(const std::vector<std::string>& inputs, TokenizerKind kind) {
  WordCounts counts;
  for (const std::string& input : inputs) {
    HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadDataFile(input));
    kind == TokenizerKind::kBpe ? CountGpt2Words(text, counts) : CountBertWords(text, counts);
  }
  return counts;
}

// The files of the tokenizer, as names and texts.
using Files = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<Files> TrainFiles(const WordCounts& counts, TokenizerKind kind, int64_t vocab_size) {
  Progress bar("finding tokens");
  const auto progress = [&](int64_t done, int64_t total) { bar.Update(done, total); };
  if (kind == TokenizerKind::kBpe) {
    HIPPODROME_ASSIGN_OR_RETURN(BpeFiles files, TrainBpe(counts, vocab_size, progress));
    return Files{{"vocab.json", std::move(files.vocab_json)},
                 {"merges.txt", std::move(files.merges)}};
  }
  HIPPODROME_ASSIGN_OR_RETURN(std::string vocab, TrainWordPiece(counts, vocab_size, progress));
  return Files{{"vocab.txt", std::move(vocab)}};
}

absl::Status WriteFiles(const std::string& directory, const Files& files) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto staged, StagedDirectory::Create(directory));
  for (const auto& [name, text] : files) {
    HIPPODROME_RETURN_IF_ERROR(WriteTextFile(staged->Add(name), text));
  }
  return staged->Publish();
}

absl::Status Train(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string out, line.Required("out"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string name, line.Choice("kind"));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t vocab_size, line.Integer("vocab", 1, 1 << 24));
  HIPPODROME_RETURN_IF_ERROR(line.Required("input").status());
  const std::vector<std::string> inputs = line.All("input");
  const TokenizerKind kind = name == "bpe" ? TokenizerKind::kBpe : TokenizerKind::kWordPiece;
  HIPPODROME_ASSIGN_OR_RETURN(const WordCounts counts, CountWords(inputs, kind));
  HIPPODROME_ASSIGN_OR_RETURN(const Files files, TrainFiles(counts, kind, vocab_size));
  return WriteFiles(out, files);
}

int TrainTokenizer(int argc, char** argv) { return RunCommand(argc, argv, kTrainSpec, Train); }
int EncodeTexts(int argc, char** argv) { return RunCommand(argc, argv, kEncodeSpec, Encode); }

constexpr Subcommand kTokenizerCommands[] = {
    {"train", "make a tokenizer from texts", TrainTokenizer},
    {"encode", "write the token ids of texts, for training", EncodeTexts},
};

}  // namespace

int TokenizerCommand(int argc, char** argv) {
  return RunSubcommand({.name = "hippodrome tokenizer",
                        .summary = "Trains a tokenizer, or encodes texts for training.",
                        .commands = kTokenizerCommands,
                        .version = ""},
                       argc, argv);
}

}  // namespace hippodrome
