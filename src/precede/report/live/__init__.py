"""Pages that show something that runs. In reading order: `page`, with its files `top.html` and `top.js`."""
