#!/usr/bin/env bash
# On the GPU machine: every agent with one model on three data sets, one process and one core each.
#
#   bash bench/gpu/agents.sh unpack DIR             # what was carried there; compile; import everything
#   bash bench/gpu/agents.sh build DIR              # the knowledge bases (no model is asked)
#   bash bench/gpu/agents.sh serve DIR              # join the model once and start the endpoint
#   bash bench/gpu/agents.sh run DIR [SECONDS]      # the agents, ended after SECONDS (500)
#   bash bench/gpu/agents.sh report DIR             # the table of what is done; into $OUT if set
#
# Each step goes on where it was cut off; `run` begins with `serve` and ends with `report`. DIR/repo is
# used if it is there, so that a step in the background does not depend on the tree of the next command.
# By the environment: RECIPES, SETS, AT_ONCE, WORKERS, LIMIT (of every set), ROOM and ROWS of the
# endpoint, and BASE_URL and MODEL of another one.
set -uo pipefail
step=${1:?step} DIR=$(realpath "${2:?folder}") seconds=${3:-500}
here=$(cd "$(dirname "$0")/../.." && pwd)
[ -d "$DIR/repo/src" ] && here=$DIR/repo
export PYTHONPATH=$here/src:$here:$DIR/pkgs PYTHONUNBUFFERED=1 CLEW_CACHE=$DIR/cache
python3 -c 'import aiohttp' 2>/dev/null || PYTHONPATH=$PYTHONPATH:$DIR/pkgs-extra
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 # numpy's threads of many processes fight for cores
cores=$(nproc)
WORKERS=${WORKERS:-$((cores > 2 ? cores - 2 : 1))}
SETS=${SETS:-hotpotqa100 musique100 2wiki}
RECIPES=${RECIPES:-clew clew:hints clew:reject naive reader+clew react graphsearch youtu rograg graph-r1 ircot}
BASE_URL=${BASE_URL:-http://127.0.0.1:8089/v1} MODEL=${MODEL:-served} AT_ONCE=${AT_ONCE:-60}
export DIR BASE_URL MODEL AT_ONCE WORKERS cores

limit_of() { [ -n "${LIMIT:-}" ] && echo "$LIMIT" || { [ "$1" = 2wiki ] && echo 200 || echo 100; }; }

settings() { # lines of clew.toml that every command has
  printf '[embed]\nfolder = "%s"\ndevice = "cpu"\n' "$DIR/minilm"
  [ -f "$DIR/reader.onnx" ] && printf '[spans]\nfile = "%s"\n' "$DIR/reader.onnx"
  true
}

unpack() {
  cd "$DIR" || exit 1
  for file in *.tgz; do [ -f "$file" ] && tar xzf "$file" && rm "$file"; done
  [ -f reader.onnx.gz ] && gunzip -f reader.onnx.gz
  library=$here/src/clew/libkernels.so
  cc -O3 -std=gnu11 -shared -fPIC -o "$library.new" "$here/src/clew/kernels.c" || cp libkernels.so "$library.new"
  mv "$library.new" "$library"
  python3 - <<'P'
import importlib

from clew.kernels import LIBRARY, load_kernels

print("kernels", load_kernels(LIBRARY) is not None, flush=True)
ours = "clew", "clew.cli.app", "bench.gpu.serve", "bench.gpu.unpack"
for name in (*"aiohttp gguf onnxruntime pydantic safetensors tokenizers torch transformers".split(), *ours):
    try:
        part = importlib.import_module(name)
        print(name, getattr(part, "__version__", ""), part.__file__, flush=True)
    except ImportError as error:
        print(f"MISSING: {name}: {error}", flush=True)
P
}

build_one() {
  set=$1 made=$DIR/kb/$set
  [ -f "$made.done" ] && return
  mkdir -p "$made" && cd "$made" || return
  settings >clew.toml
  # One question of every recipe: what a recipe embeds at its first use is then in every copy.
  python3 -m clew eval "$DIR/data/$set" --recipe clew,naive,lightrag,hipporag2,youtu,graph-r1,hypergraphrag \
    --limit 1 --kb kb --json >built.json 2>log && rm -r kb/runs && touch "$made.done" || tail -3 log
  echo "$(date +%T) built $set"
}

build() { for set in $SETS; do build_one "$set" & done; wait; }

serve() {
  [ "$BASE_URL" = http://127.0.0.1:8089/v1 ] || return 0
  python3 -m bench.gpu.unpack "$DIR" || return
  if ! curl -sf "$BASE_URL/models" >/dev/null; then
    cd "$DIR" && setsid nohup python3 -m bench.gpu.serve "$DIR/hf" --room "${ROOM:-8192}" \
      --rows "${ROWS:-320}" >>"$DIR/serve.log" 2>&1 </dev/null &
    for _ in $(seq 120); do
      curl -sf "$BASE_URL/models" && return
      sleep 1
    done
    tail -20 "$DIR/serve.log"
    return 1
  fi
}

run_one() { # one recipe, `clew:hints` and `clew:reject` being settings of it, on one set
  number=$1 set=$2 job=$3 limit=$4 recipe=${3%%:*} mode=open
  out=$DIR/runs/$set-$job
  [ -f "$out/table.json" ] && return
  mkdir -p "$out" && cd "$out" || return
  [ -d kb ] || { cp -r "$DIR/kb/$set/kb" kb.new && mv kb.new kb; }
  settings >clew.toml
  printf '[models]\nmodel = "%s"\nbase_url = "%s"\napi_key = "none"\n' "$MODEL" "$BASE_URL" >>clew.toml
  printf 'concurrency = %s\nadapt = false\ntimeout = 900\n' "$AT_ONCE" >>clew.toml
  case $job in
    *:hints) printf '[answer]\nhints = true\n' >>clew.toml ;;
    *:reject) mode=reject ;;
  esac
  pinned=$(command -v taskset >/dev/null && echo taskset -c $((number % cores)))
  began=$(date +%s)
  if $pinned python3 -m clew eval "$DIR/data/$set" --recipe "$recipe" --answers --mode $mode --limit "$limit" \
    --at-once "$AT_ONCE" --metrics f1,em,subem,recall@5 --kb kb --json >table.json.new 2>>log; then
    mv table.json.new table.json
    echo "$(date +%T) $set $job $(($(date +%s) - began)) s"
  else
    echo "$(date +%T) $set $job failed: $(tail -c 300 log)"
  fi
}
export -f run_one settings

run() {
  serve || exit 1
  wait_until=$(($(date +%s) + seconds))
  for job in $RECIPES; do for set in $SETS; do echo "$set $job $(limit_of "$set")"; done; done |
    awk '{print NR, $0}' |
    timeout "$seconds" xargs -P "$WORKERS" -L 1 bash -c 'run_one "$@"' run_one
  left=$((wait_until - $(date +%s)))
  echo "$left seconds left"
  tail -2 "$DIR/serve.log" 2>/dev/null
  report
}

report() {
  cd "$DIR/runs" && python3 - <<'P'
import json
from pathlib import Path

for table in sorted(Path().glob("*/table.json"), key=lambda one: one.parent.name):
    whole = json.loads(table.read_text())
    row = next(iter(whole["recipes"].values()))
    kept = [f"{key} {row[key]:.3f}" for key in ("f1", "em", "subem", "recall@5") if key in row]
    rest = {key: row[key] for key in ("n", "failed", "calls", "tokens", "refused") if row.get(key)}
    print(f"{table.parent.name:28}", *kept, json.dumps(rest), json.dumps(whole["failures"])[:200])
P
  [ -n "${OUT:-}" ] || return 0
  tar czf "$OUT/tables.tgz" -- */table.json */log
  # Answers with their signals and scores; a part of 15 MB is what comes back as one file.
  tar cf - -- */kb/runs | gzip | split -b 15000000 -d -a 1 - "$OUT/records.tgz."
  ls -la "$OUT"
}

"$step"
