#include "tools/convert/export_command.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "engine/base/status.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/progress.h"
#include "tools/convert/export.h"

namespace hippodrome {
namespace {

const CommandSpec kExportSpec = {
    .name = "export",
    .summary = "Writes a model directory in the layout of the published code.",
    .usage = {"--model DIR --format FORMAT --out PATH"},
    .description =
        "Values stay as they are, in bf16 too: convert makes the same model of the result. Models "
        "of --dtype int8 and int4 are refused; begin with what they were made from.",
    .options = {
        ModelOption(),
        {"format", "torch|huggingface|flax",
         "torch: of H3, a .pt file with the state_dict, to be converted with --config "
         "DIR/config.json; huggingface: of BiGS, a directory with config.json, pytorch_model.bin "
         "and vocab.txt; flax: the same with flax_model.msgpack"},
        {"out", "PATH", "file or directory to write"},
    }};

absl::Status RunExport(const CommandLine& arguments) {
  ExportOptions options;
  HIPPODROME_ASSIGN_OR_RETURN(options.model, arguments.Required("model"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string format, arguments.Choice("format"));
  options.format = *std::ranges::find(kExportFormats, format,
                                      [](ExportFormat f) { return std::string(Name(f)); });
  HIPPODROME_ASSIGN_OR_RETURN(options.out, arguments.Required("out"));
  absl::StatusOr<ExportResult> result;
  {
    Progress progress("exporting");
    result = Export(options, [&](int64_t done, int64_t total) { progress.Update(done, total); });
  }
  if (!result.ok()) return result.status();
  std::printf("wrote %s: %lld tensors, %lld bytes\n", options.out.c_str(),
              static_cast<long long>(result->tensors), static_cast<long long>(result->bytes));
  return absl::OkStatus();
}

}  // namespace

int ExportCommand(int argc, char** argv) { return RunCommand(argc, argv, kExportSpec, RunExport); }

}  // namespace hippodrome
