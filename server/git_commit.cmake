# Writes the header FILE with the commit of the sources in SOURCE, where that is new.
#   cmake -D SOURCE=... -D FILE=... -P git_commit.cmake
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --exclude=* --abbrev=12
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR commit STREQUAL "")
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${FILE} CONTENT "#define HIPPODROME_GIT_COMMIT \"${commit}\"\n")
