const o={};export{o as zh};
