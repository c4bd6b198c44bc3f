"""The settings file that `clew init` writes: every setting with its default, as a comment."""

TEMPLATE = """\
# Settings of Clew. Every line is optional; what is commented out shows the default.
# Environment variables win over this file: CLEW_KB, CLEW_RECIPE, CLEW_MODEL, CLEW_CACHE,
# OPENAI_API_KEY, OPENAI_BASE_URL.

# kb = "kb"                 # the folder of the knowledge base, or postgresql://HOST/DATABASE
# recipe = "clew"           # the method that answers; `clew recipes` lists them all
# extractor = "auto"        # offline needs no model; auto uses a model if there is one
# schema_file = "schema.toml"   # the types that `--extractor schema` starts from
# cache = "~/.cache/clew"   # where weights prepared for this machine are kept
# wait = 10.0               # seconds to wait for another writer
# memory = "2GB"            # builds and imports use scratch files beyond it; default: no limit,
#                            below 8 GB of memory half of it

[store]
# files = ""                # of a database: a folder or s3://… for arrays and vectors
# lease = 30.0              # seconds after which a silent worker's jobs go to another

[models]
# model = ""                # a chat model's name; empty: no model is used
# base_url = "https://api.openai.com/v1"    # any OpenAI-compatible endpoint
# api_key = ""              # better in OPENAI_API_KEY
# window = 8192             # context window in tokens; default: as the endpoint or the name tells
# reasoning_effort = "low"  # of a model that thinks; default: not sent
# extract = "small-model"   # another model for one role: extract, plan, answer, judge
# concurrency = 16          # calls at once, at most: fewer where a server makes them wait
# adapt = true              # false: always as many as `concurrency`
# timeout = 300             # seconds for one call, without waiting for other calls
# requests_per_minute = 500
# tokens_per_minute = 200000
# prices = { "small-model" = { prompt = 0.15, completion = 0.6 } }    # per million tokens

[embed]
# model = "local"           # all-MiniLM-L6-v2 on this machine, or a model name at `base_url`
# folder = "weights"        # your own ONNX weights and tokenizer.json
# base_url = "http://localhost:8000/v1"
# api_key = ""
# query_prefix = ""         # some models want "query: " and "passage: "
# passage_prefix = ""
# timeout = 60              # seconds for one call to the endpoint
# kinds = ["chunk", "fact"] # what `clew add` embeds; entities when a recipe first reads them
# device = "auto"           # of the local embedder: a GPU with onnxruntime-gpu; or "cpu", "cuda"
# import_limit = 100000     # imported graphs up to this many elements are embedded by default

[rerank]
# folder = "cross-encoder"  # ONNX weights and tokenizer.json of a cross-encoder
# model = ""                # or a model at an endpoint that answers POST /rerank
# base_url = "http://localhost:8000/v1"

[answer]
# confidence = 0.5          # in `--mode reject` answers below this are refused

[spans]
# file = "reader.onnx"      # weights of the span reader, if not those of the package

[read]
# seconds = 120             # processor time for one file, of formats with a parser
# pages = 5000              # of one PDF
# file_bytes = 200000000    # of one file, and what it unpacks to
# ocr = "auto"              # scanned pages by tesseract if it is installed; "eng+deu", "never"

[chunk]
# by = "sentences"          # sentences, tokens or headings
# size = 400                # tokens, estimated
# overlap = 0

[extract]
# gleaning = "trial"        # a judge is asked before each further round; base: after it
# rounds = 0                # further rounds per chunk, at most
# max_tokens = 4096         # the longest answer for one chunk
# fallback = "none"         # offline: rules extract what the model fails on, until `--retry`
# processes = 0             # of a large build by rules; 0: as many as help, 1: no others

[index]
# exact = false             # true: compare all vectors, also where an index would be faster
# lists = 0                 # inverted lists that a query reads; 0: as many as measured to be enough

[tree]
# grow = "auto"             # keep an existing tree up to date; never: only `clew tree --grow`

[serve]
# host = "127.0.0.1"        # another address needs a key: `clew keys add NAME`
# port = 8321
# workers = 1               # processes that answer requests
# hosts = ["rag.example.org"]           # names under which it is reached
# origins = ["https://chat.example.org"]    # web pages that may call it
# root_path = ""            # the path under which a reverse proxy serves it
# open_workspaces = 8       # knowledge bases open at once
# label_views = 16          # copies without hidden documents that are kept on disk
# queue = 64                # requests in work or waiting in a process; more are answered 429
# streams = 256             # streamed answers at once
# body_bytes = 1000000      # of a request
# upload_bytes = 200000000  # of an uploaded file
# body_seconds = 60.0       # within which a body must arrive
# header_seconds = 15.0     # within which headers must arrive
# stall_seconds = 60.0      # after which a caller that does not read is cut off
# requests_per_minute = 6000.0  # of a key without a limit of its own
# model_calls = 16          # model calls at once, of all workspaces, workers and builds
# jobs = 1                  # builds and evaluations at once
# rest = true               # false: only /mcp, /health and /ready
# mcp = true                # serve the Model Context Protocol at /mcp
# mcp_add = false           # let agents add documents
# shutdown_seconds = 20.0   # for running requests when the server is stopped
# reload_seconds = 3600.0   # for streams of workers that a reload has replaced

# Your own recipes: `clew recipes --steps` lists what they can be made of, and
# `clew recipes NAME --toml` prints any recipe in this form.
# [recipes.mine]
# base = "lightrag"         # start from a recipe, or leave it out and list the steps
# agent = "graphsearch"     # answers with this agent; without one the model reads once
# set = { "NearEntities.top_k" = 60, "GraphSearch.max_reflections" = 1 }
# chunk = { size = 1200, overlap = 100, by = "tokens" }    # for `clew add --recipe mine`
"""
